// Ctrl-C: notes SIGINT and SIGTERM so that the training loop can stop on all ranks after the same
// step.
#pragma once

#include <csignal>

namespace bitrail::train {

// Catches the two signals while it lives, puts back what was there before. One at a time. The
// fourth signal kills as usual, so a rank that hangs can be ended by hand; the first three may all
// come from one Ctrl-C (terminal, launcher, a launcher's launcher).
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  // The signal that came, 0 if none.
  static int Caught();

 private:
  struct sigaction before_int_ = {};
  struct sigaction before_term_ = {};
};

}  // namespace bitrail::train
