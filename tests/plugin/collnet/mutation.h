// Ways in which a CollNet can be wrong, put between the driver and a good one. The driver has to
// notice each.
#pragma once

#include <memory>

#include "tests/plugin/collnet/coll.h"

namespace bitrail::test {

enum class CollFault {
  none,
  request_unwritten,  // iallreduce without room leaves *request as it was
  done_unwritten,     // test leaves *done as it was while there is nothing to tell
  lost_call,          // calls on users' buffers are done at once, and nothing happened
  wrong_size,         // test tells half of the bytes
  supports_all,       // reduceSupport says yes to everything
  mean,               // iallreduce gives the mean
  long_sum,           // one element more than asked for is written
  lost_registration,  // regMr succeeds without a handle
  forgotten_errors,   // 1-bit errors do not outlive the call
  left_open,          // closeColl does nothing
};
constexpr int kCollFaults = 11;
const char* coll_fault_name(CollFault fault);

// A CollNet with this fault over `inner`, which has to outlive it.
std::unique_ptr<Coll> mutate(Coll* inner, CollFault fault);

}  // namespace bitrail::test
