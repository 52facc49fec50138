// `bitrail bench step | exchange | memory | volume`: what tools/bench/optimizers makes its table
// of. Each prints one JSON object and returns the exit status: 0, or 1 when something failed. All
// but step are collective under `bitrail launch`; rank 0 prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bitrail::tools {

// One compressed step of 1-bit Adam over `elements` float32 in this process, through the engine, in
// turn with memcpy of as many: {"bytes": that a step must move, an element, "step": [seconds],
// "copy": [seconds]}.
int BenchStep(uint64_t elements, int rounds);

// 1-bit allreduces of tensors of these sizes, all in one call and each in its own, in turn:
// {"one": {"seconds": [], "bytes", "messages": of rank 0 and round}, "separate": the same}.
int BenchExchange(const std::vector<uint64_t>& counts, int rounds);

// Peak of resident memory, from before the optimizer exists until after compressed steps:
// {"peak": bytes, "state": bytes that the optimizer says it holds, "parameters"}.
int BenchMemory(const std::string& optimizer, uint64_t parameters);

// `steps` steps over a few elements: {"full": exchanges in full precision that the optimizer asked
// for, "onebit": compressed exchanges it made, "skipped": steps without}. `freeze`: freeze_step.
int BenchVolume(const std::string& optimizer, int64_t steps, int64_t freeze);

}  // namespace bitrail::tools
