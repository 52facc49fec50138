// Which instruction set the host kernels run with. Normally the best one is taken at the first
// call; tests and benchmarks choose.
#pragma once

#include <cstdint>
#include <vector>

namespace bitrail::kernels {

// Those compiled in that this machine has, best first; only the forced one while one is forced.
std::vector<int64_t> Targets();
// "AVX3" (= AVX-512), "AVX2", "SSE4", ...; "Unknown".
const char* TargetName(int64_t target);
// The name of the one in use.
const char* ActiveTarget();
// From now on kernels use `target`, one of Targets(); 0: the best again. Not while kernels run on
// other threads. Functions found before (FindReduce) keep their target.
void ForceTarget(int64_t target);

}  // namespace bitrail::kernels
