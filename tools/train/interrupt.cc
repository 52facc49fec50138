#include "tools/train/interrupt.h"

namespace bitrail::train {
namespace {

volatile std::sig_atomic_t caught = 0;
volatile std::sig_atomic_t times = 0;

void OnSignal(int signal) {
  caught = signal;
  times = times + 1;
  if (times <= 3) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Interrupt::Interrupt() {
  caught = 0;
  times = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

int Interrupt::Caught() { return caught; }

}  // namespace bitrail::train
