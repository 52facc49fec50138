// The command's work at one rank: joins the job and trains once, or once for each optimizer and
// seed that is to be compared.
#pragma once

#include "runtime/common/status.h"
#include "tools/train/options.h"

namespace bitrail::train {

// Reports at rank 0. *interrupted: all ranks stopped early because one of them got a signal, and
// the status is BITRAIL_ERR_ABORTED.
Status Train(const TrainOptions& options, bool* interrupted);

}  // namespace bitrail::train
