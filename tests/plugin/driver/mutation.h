// Ways in which a plugin can be wrong, put between the driver and a good one. The driver has to
// notice each.
#pragma once

#include <memory>

#include "tests/plugin/driver/net.h"

namespace bitrail::test {

enum class Fault {
  none,
  request_unwritten,   // isend without room leaves *request as it was
  sentinel_kept,       // irecv leaves NCCL's mark in *request
  blocking_connect,    // connect waits for the peer
  lost_zero_bytes,     // a message of 0 bytes is not sent
  done_unwritten,      // test leaves *done as it was while there is nothing to tell
  wrong_size,          // test tells the buffer's size instead of the message's
  too_many_sizes,      // test of a send writes a second size
  reordered,           // two sends with one tag change places
  early_done,          // test says done before the data are there
  flipped_bit,         // one bit of a long message
  error_without_room,  // isend fails where it should ask to be called again
  lost_registration,   // regMr succeeds without a handle
};
constexpr int kFaults = 13;
const char* fault_name(Fault fault);

// A net with this fault over `inner`, which has to outlive it.
std::unique_ptr<Net> mutate(Net* inner, Fault fault);

}  // namespace bitrail::test
