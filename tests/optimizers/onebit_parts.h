// The exchange inside an optimizer, for tests.
#pragma once

#include "optimizers/onebit_adam.h"
#include "optimizers/onebit_lamb.h"
#include "optimizers/optimizer.h"
#include "optimizers/zero_one_adam.h"

namespace bitrail::test {

inline optimizers::Exchange& ExchangeOf(bitrail_optimizer_t optimizer) {
  optimizers::Method* method = optimizer->method.get();
  if (auto* adam = dynamic_cast<optimizers::OneBitAdam*>(method)) return adam->exchange;
  if (auto* lamb = dynamic_cast<optimizers::OneBitLamb*>(method)) return lamb->exchange;
  return dynamic_cast<optimizers::ZeroOneAdam&>(*method).exchange;
}

// Null with one rank.
inline bitrail_error_state* ErrorsOf(bitrail_optimizer_t optimizer) {
  return ExchangeOf(optimizer).errors.get();
}

}  // namespace bitrail::test
