// One training run of one rank: one optimizer and seed, from the first step to the held-out loss.
#pragma once

#include <bitrail/bitrail.h>

#include <vector>

#include "runtime/common/status.h"
#include "tools/train/options.h"
#include "tools/train/report.h"
#include "tools/train/tokenizer.h"

namespace bitrail::train {

// What all runs of a job share.
struct Job {
  bitrail_comm_t comm = nullptr;  // borrowed
  std::vector<Token> tokens;
  double unigram_entropy = 0;
  Report* report = nullptr;  // rank 0 only, borrowed
};

// Trains, evaluates, reports (rank 0). Both results are filled on every rank, records with losses
// averaged over the ranks. SIGINT or SIGTERM at any rank ends all of them after the same step with
// BITRAIL_ERR_ABORTED and summary->interrupted. A NaN or Inf gradient: BITRAIL_ERR_NOT_FINITE with
// summary->diverged, on every rank.
Status RunTraining(const Job& job, const TrainOptions& options, Summary* summary,
                   std::vector<StepRecord>* records);

}  // namespace bitrail::train
