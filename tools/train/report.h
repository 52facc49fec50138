// What a run tells: one record a step, to the terminal and to a JSON file; a summary at the end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::train {

struct StepRecord {
  int64_t step = 0;         // from 1
  double loss = 0;          // nat a masked token, mean over ranks
  double step_ms = 0;       // compute_ms + comm_ms, this rank
  double compute_ms = 0;    // batch, forward and backward pass
  double comm_ms = 0;       // exchange and parameter update
  uint64_t wire_bytes = 0;  // payload this rank sent for them
  bool compressed = false;
  double lr = 0;
};

struct Phase {
  int64_t steps = 0;
  // Medians over the phase's steps.
  double step_ms = 0, compute_ms = 0, comm_ms = 0;
  double wire_bytes = 0;  // mean a step
};

struct Summary {
  std::string optimizer;
  int64_t steps = 0;  // taken
  int64_t world_size = 0;
  uint64_t parameters = 0;  // elements
  double final_loss = 0;    // mean over the last final_steps steps, nat a masked token
  int64_t final_steps = 0;
  double held_out_loss = 0;  // NaN without evaluation
  double unigram_entropy = 0;
  double seconds = 0;  // of all steps together
  Phase full, compressed;
  bool interrupted = false;           // all ranks stopped early, as asked by a signal
  double unused_positions_moved = 0;  // largest change of a position row that no sequence uses
};

// The loss over this many last steps is a run's final loss: one step's is too noisy to compare.
inline constexpr int64_t kFinalSteps = 20;

// Everything of Summary that follows from the records.
Summary Summarise(const std::vector<StepRecord>& records);

class Report {
 public:
  // Opens the JSON file (empty: none). Only the rank that reports makes one.
  static Status Create(const std::string& json, int64_t steps, std::unique_ptr<Report>* report);
  // Writes the record; shows it if it is due: always on a terminal (over the last one), else every
  // twentieth of the run.
  Status Step(const StepRecord& record);
  // One summary line for people, one {"summary": ...} line for programs.
  Status Finish(const Summary& summary);

 private:
  using File = std::unique_ptr<FILE, int (*)(FILE*)>;
  Report(File json, std::string path, int64_t steps);
  Status Write(const std::string& line);

  File json_;
  std::string path_;
  int64_t steps_;
  int64_t every_;
  bool terminal_;
};

}  // namespace bitrail::train
