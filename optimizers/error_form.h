// The form in which an optimizer's errors are kept (runtime/api/error_state.h), as a checkpoint
// says it: flat ones say nothing, the others have a small tensor "error_form" a rank.
#pragma once

#include <vector>

#include "optimizers/checkpoint/content.h"
#include "optimizers/checkpoint/load.h"
#include "optimizers/exchange.h"

namespace bitrail::optimizers {

struct ErrorForm {
  int rails = 0;             // 0: flat
  std::vector<int> holders;  // by chunk: the rank that averages it
  bool operator==(const ErrorForm&) const = default;
};

// What one rank says of it.
struct ErrorPlace {
  int64_t rails = 0, chunks = 0;
  int64_t own_chunk = -1;  // none
};

ErrorForm FormOf(const bitrail_error_state& errors);
ErrorPlace PlaceOf(const bitrail_error_state& errors);
// Borrows from `place`.
checkpoint::Tensor TensorOf(const ErrorPlace& place);
// The form of a checkpoint's errors; BITRAIL_ERR_MISMATCH where its ranks contradict each other.
Status ReadForm(checkpoint::Checkpoint& checkpoint, ErrorForm* form);

// The layout that the exchange's errors have in that form with `world` ranks. A kept tail is
// padding here: the places of everything else are the same.
Status LayoutOf(const ErrorForm& form, const Exchange& exchange, int world,
                engine::OnebitLayout* layout);

}  // namespace bitrail::optimizers
