// A transport inside one process, for tests of what stands on transport.h: ranks are threads,
// messages are copies in queues.
//
// Faults can be switched on: messages that never arrive, arrive late, or are refused for want of
// room. What it promises otherwise is what transport.h promises.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/transport/transport.h"

namespace bitrail::test {

struct Faults {
  std::atomic<int> lose_every{0};     // every n-th message vanishes; 0 none
  std::atomic<int> refuse_every{0};   // every n-th isend or irecv says "no room, again"
  std::atomic<int> shuffle{0};        // non-zero: messages of different tags overtake each other
  std::atomic<int> corrupt_every{0};  // every n-th message has its first byte flipped
};

// What the ranks of one test share. Must outlive their contexts.
class Wire {
 public:
  Wire();
  ~Wire();
  Faults faults;
  std::unique_ptr<transport::Context> context(int rank);
  struct State;
  State* state() { return state_.get(); }

 private:
  std::unique_ptr<State> state_;
};

// The ranks' meeting place without sockets. lose(rank) makes it look lost to the others.
class Party {
 public:
  explicit Party(int size);
  ~Party();
  std::unique_ptr<bootstrap::Bootstrap> bootstrap(int rank);
  void lose(int rank);
  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace bitrail::test
