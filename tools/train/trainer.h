// The training loop of one rank.
#pragma once

#include "runtime/common/status.h"
#include "tools/train/options.h"
#include "tools/train/report.h"

namespace bitrail::train {

// Joins the job, trains, evaluates, reports (rank 0), leaves. *summary is filled on every rank.
// SIGINT or SIGTERM at any rank ends all of them after the same step with BITRAIL_ERR_ABORTED and
// summary->interrupted.
Status Train(const TrainOptions& options, Summary* summary);

}  // namespace bitrail::train
