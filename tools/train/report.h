// What a run tells: one record a step, to the terminal and to a JSON file; a summary at the end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::train {

// What a step exchanged: the gradient in full precision, 1 bit a value, or nothing (a local step).
enum class StepKind : uint8_t { full, compressed, local };

struct StepRecord {
  int64_t step = 0;         // from 1
  double loss = 0;          // nat a masked token, mean over ranks and micro-batches
  double step_ms = 0;       // compute_ms + comm_ms, this rank
  double compute_ms = 0;    // batches, forward and backward passes
  double comm_ms = 0;       // exchange and parameter update
  uint64_t wire_bytes = 0;  // payload this rank sent for them
  StepKind kind = StepKind::full;
  double lr = 0;
  double loss_scale = 1;
  bool skipped = false;  // the gradient overflowed: no update
};

struct Phase {
  int64_t steps = 0;
  // Medians over the phase's steps.
  double step_ms = 0, compute_ms = 0, comm_ms = 0;
  double wire_bytes = 0;  // mean a step
};

struct Summary {
  std::string optimizer;
  uint64_t seed = 0;
  int64_t steps = 0;  // taken
  int64_t world_size = 0;
  uint64_t parameters = 0;  // elements
  double final_loss = 0;    // mean over the last final_steps steps, nat a masked token
  int64_t final_steps = 0;
  double held_out_loss = 0;  // NaN without evaluation
  double unigram_entropy = 0;
  double seconds = 0;            // of all steps together
  double tokens_per_second = 0;  // read by all ranks together
  double wire_bytes = 0;         // of all steps together
  int64_t skipped_steps = 0;
  uint64_t state_bytes = 0;  // of this rank's optimizer
  int64_t frozen_at = -1;    // the optimizer's step count at its freeze; -1: not frozen
  Phase full, compressed, local;
  bool interrupted = false;           // all ranks stopped early, as asked by a signal
  bool diverged = false;              // a gradient was NaN or Inf; the losses are NaN
  double unused_positions_moved = 0;  // largest change of a position row that no sequence uses
};

// The loss over this many last steps is a run's final loss: one step's is too noisy to compare.
inline constexpr int64_t kFinalSteps = 20;

// Everything of Summary that follows from the records; `tokens`: of all ranks in one step.
Summary Summarise(const std::vector<StepRecord>& records, int64_t tokens);

class Report {
 public:
  // Opens the JSON file (empty: none). Only the rank that reports makes one.
  static Status Create(const std::string& json, std::unique_ptr<Report>* report);
  // A run of `steps` steps begins. Steps are shown every
  // `print_every`; 0: twenty of the run. On a terminal always, each over the last one.
  void Begin(const std::string& optimizer, uint64_t seed, int64_t steps, int64_t print_every);
  // Writes the record; shows it if it is due.
  Status Step(const StepRecord& record);
  // One summary line for people, one {"summary": ...} line for programs.
  Status Finish(const Summary& summary);
  // One line of JSON as it is.
  Status Write(const std::string& line);

 private:
  using File = std::unique_ptr<FILE, int (*)(FILE*)>;
  Report(File json, std::string path);

  File json_;
  std::string path_;
  std::string optimizer_;
  uint64_t seed_ = 0;
  int64_t steps_ = 0;
  int64_t every_ = 1;
  bool shown_ = false;  // a step of this run
  bool terminal_;
};

// "3.18 MB"
std::string Bytes(double bytes);

}  // namespace bitrail::train
