// The two ends of a connection in a progress thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/plugin/driver/caller.h"
#include "tests/plugin/driver/net.h"
#include "tests/plugin/driver/plan.h"

namespace bitrail::test {

struct Stream {
  Net* net = nullptr;
  Protocol protocol = Protocol::simple;
  uint64_t seed = 0;
  uint64_t steps = 0;  // in all
  void* comm = nullptr;
  void* memory = nullptr;
  std::vector<uint8_t> buffer;

  uint64_t posted = 0, finished = 0;
  struct Flight {
    Step step;
    int parts_posted = 0;
    void* requests[kMaxGroup] = {};
    bool done[kMaxGroup] = {};
  };
  Flight flights[kSteps];

  bool complete() const { return finished == steps; }
  uint8_t* slot(uint64_t index) { return buffer.data() + index % kSteps * slot_bytes(protocol); }
};

// Steps until `bytes` have been sent.
uint64_t count_steps(uint64_t seed, Protocol protocol, size_t bytes);

// Post what can be posted, test what is in flight; true when anything moved.
bool advance_send(Stream* stream, const Caller& call);
bool advance_receive(Stream* stream, const Caller& call);

}  // namespace bitrail::test
