#include "tools/train/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "tools/train/exchange.h"
#include "tools/train/interrupt.h"
#include "tools/train/model.h"

namespace bitrail::train {
namespace {

// Ranks average their losses and agree on whether to stop after this many steps: rarely enough to
// cost nothing on a slow link, often enough that Ctrl-C is answered in a few seconds.
constexpr int64_t kAgreeSteps = 5;

double Milliseconds(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
}

struct Run {
  const Job& job;
  const TrainOptions& options;
  uint64_t rank = 0;
  int64_t world_size = 1;
  std::unique_ptr<Model> model;
  Storage parameters;
  std::vector<float> gradient, part;  // of a step; of one micro-batch, unless there is only one
  std::unique_ptr<Exchange> exchange;
  Batch batch;
  std::vector<StepRecord>& records;
  int64_t done = 0;   // steps before this run: a checkpoint's
  size_t shared = 0;  // records whose loss is averaged over the ranks already
};

// The gradient of the mean loss over a step's micro-batches. Batches are numbered through the whole
// run, so a step's data follow from its number alone.
Status ComputeGradient(Run* run, int64_t step, double* loss) {
  const int64_t parts = run->options.batch.accumulation;
  *loss = 0;
  for (int64_t i = 0; i < parts; i++) {
    const auto number = static_cast<uint64_t>((step - 1) * parts + i + 1);
    MakeBatch(run->job.tokens, run->options.shape,
              {run->options.seed, run->rank, number, Part::train}, &run->batch);
    double one = 0;
    float* to = i == 0 ? run->gradient.data() : run->part.data();
    BITRAIL_TRY(run->model->LossAndGradient(run->parameters.values.data(), run->batch, &one, to));
    *loss += one / static_cast<double>(parts);
    if (i == 0) continue;
    for (size_t k = 0; k < run->gradient.size(); k++) run->gradient[k] += run->part[k];
  }
  if (parts == 1) return {};
  const float share = 1 / static_cast<float>(parts);
  for (float& g : run->gradient) g *= share;
  return {};
}

Status TakeStep(Run* run, int64_t step) {
  StepRecord r;
  r.step = step;
  // As DeepSpeed's schedulers: skipped steps do not move the schedule.
  r.lr = LearningRate(run->options,
                      step - bitrail_optimizer_skipped_steps(run->exchange->optimizer()));
  const auto start = std::chrono::steady_clock::now();
  BITRAIL_TRY(ComputeGradient(run, step, &r.loss));
  r.compute_ms = Milliseconds(start);
  if (Status status = run->exchange->Step(r.lr, run->gradient.data(), &r); !status.ok()) {
    return failure(status.code(), "step {}: {}{}", step, status.text(),
                   status.code() == BITRAIL_ERR_NOT_FINITE
                       ? "; the training diverged, take a smaller --lr"
                       : "");
  }
  r.step_ms = Milliseconds(start);
  r.comm_ms = r.step_ms - r.compute_ms;
  run->records.push_back(r);
  return {};
}

// Averages the losses since the last call, reports them, and tells whether any rank wants to stop.
Status Agree(Run* run, bool* stop) {
  std::vector<float> values;
  for (size_t i = run->shared; i < run->records.size(); i++)
    values.push_back(static_cast<float>(run->records[i].loss));
  values.push_back(Interrupt::Caught() != 0 ? 1.0F : 0.0F);
  BITRAIL_TRY(Average(run->job.comm, &values));
  *stop = values.back() > 0;
  for (size_t i = 0; i + 1 < values.size(); i++) {
    StepRecord* r = &run->records[run->shared++];
    r->loss = static_cast<double>(values[i]);
    if (run->job.report != nullptr) BITRAIL_TRY(run->job.report->Step(*r));
  }
  return {};
}

// Mean loss over held-out batches, other ones on each rank.
Status Evaluate(Run* run, double* loss) {
  *loss = std::numeric_limits<double>::quiet_NaN();
  if (run->options.eval_batches == 0) return {};
  double sum = 0;
  for (int64_t i = 0; i < run->options.eval_batches; i++) {
    MakeBatch(run->job.tokens, run->options.shape,
              {run->options.eval_seed, run->rank, static_cast<uint64_t>(i), Part::held_out},
              &run->batch);
    double one = 0;
    BITRAIL_TRY(run->model->Loss(run->parameters.values.data(), run->batch, &one));
    sum += one / static_cast<double>(run->options.eval_batches);
  }
  std::vector<float> values = {static_cast<float>(sum)};
  BITRAIL_TRY(Average(run->job.comm, &values));
  *loss = static_cast<double>(values[0]);
  return {};
}

// Start values as they are stored.
Storage Start(const Run& run) {
  return {run.options.precision,
          InitialParameters(run.options.shape, run.model->layout(), run.options.seed)};
}

double UnusedPositionsMoved(const Run& run) {
  const Layout& layout = run.model->layout();
  const Shape& shape = run.options.shape;
  const Storage start = Start(run);
  float moved = 0;
  const size_t end = layout.position + static_cast<size_t>(shape.positions * shape.width);
  for (size_t i = layout.position + static_cast<size_t>(shape.sequence * shape.width); i < end; i++)
    moved = std::max(moved, std::abs(run.parameters.values[i] - start.values[i]));
  return static_cast<double>(moved);
}

void Announce(const Run& run) {
  const Shape& shape = run.options.shape;
  const BatchSizes& batch = run.options.batch;
  fmt::print(
      "{}: {} ranks, {} parameters ({} layers, width {}, {} heads) in {}, batch {} x {} tokens a "
      "rank{}, transport {}\n",
      Name(run.options.optimizer), run.world_size, run.parameters.values.size(), shape.layers,
      shape.width, shape.heads, Name(run.options.precision), shape.batch, shape.sequence,
      batch.accumulation > 1 ? fmt::format(", {} micro-batches a step", batch.accumulation) : "",
      bitrail_comm_transport(run.job.comm));
  fmt::print("corpus: {} tokens, vocabulary {}, unigram entropy {:.4f} nat a token\n",
             run.job.tokens.size(), shape.vocabulary, run.job.unigram_entropy);
  std::fflush(stdout);
}

Status Resume(Run* run) {
  if (run->options.resume.empty()) return {};
  BITRAIL_TRY(run->exchange->Load(run->options.resume, run->options.reset_errors));
  run->done = run->exchange->StepsTaken();
  if (run->done >= run->options.steps)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "--resume {}: is after step {}, nothing is left of --steps {}",
                   run->options.resume, run->done, run->options.steps);
  if (run->job.report != nullptr)
    fmt::print("resumed after step {} from {}\n", run->done, run->options.resume);
  return {};
}

Status Prepare(Run* run) {
  run->rank = static_cast<uint64_t>(bitrail_comm_rank(run->job.comm));
  run->world_size = bitrail_comm_world_size(run->job.comm);
  BITRAIL_TRY(Model::Create(run->options.shape, &run->model));
  const Layout& layout = run->model->layout();
  run->parameters = Start(*run);
  run->gradient.resize(layout.count);
  if (run->options.batch.accumulation > 1) run->part.resize(layout.count);
  run->records.clear();
  run->records.reserve(static_cast<size_t>(run->options.steps));
  BITRAIL_TRY(
      Exchange::Create(run->job.comm, run->options, layout, &run->parameters, &run->exchange));
  if (run->job.report != nullptr) {
    run->job.report->Begin(Name(run->options.optimizer), run->options.seed, run->options.steps,
                           run->options.print_every);
    Announce(*run);
  }
  BITRAIL_TRY(Resume(run));
  return Checked(bitrail_barrier(run->job.comm, nullptr), "start");
}

Status Loop(Run* run, bool* stop) {
  const TrainOptions& o = run->options;
  for (int64_t step = run->done + 1; step <= o.steps && !*stop; step++) {
    BITRAIL_TRY(TakeStep(run, step));
    if (step % kAgreeSteps == 0 || step == o.steps) BITRAIL_TRY(Agree(run, stop));
    const bool due = o.save_every > 0 && step % o.save_every == 0;
    if (!o.save.empty() && (due || step == o.steps || *stop))
      BITRAIL_TRY(run->exchange->Save(o.save));
  }
  // A signal during the last steps changes nothing any more.
  *stop = run->records.back().step < run->options.steps;
  return {};
}

void Fill(const Run& run, Summary* summary) {
  const int64_t tokens = run.options.batch.train * run.options.shape.sequence;
  *summary = Summarise(run.records, tokens);
  summary->optimizer = Name(run.options.optimizer);
  summary->seed = run.options.seed;
  summary->world_size = run.world_size;
  summary->parameters = run.parameters.values.size();
  summary->unigram_entropy = run.job.unigram_entropy;
  summary->state_bytes = bitrail_optimizer_state_bytes(run.exchange->optimizer());
  summary->frozen_at = bitrail_optimizer_frozen_at(run.exchange->optimizer());
  summary->unused_positions_moved = UnusedPositionsMoved(run);
}

}  // namespace

Status RunTraining(const Job& job, const TrainOptions& options, Summary* summary,
                   std::vector<StepRecord>* records) {
  Run run{.job = job, .options = options, .records = *records};
  BITRAIL_TRY(Prepare(&run));
  bool interrupted = false;
  const Status status = Loop(&run, &interrupted);
  Fill(run, summary);
  summary->interrupted = interrupted;
  if (status.code() == BITRAIL_ERR_NOT_FINITE) {
    summary->diverged = true;
    summary->final_loss = summary->held_out_loss = std::numeric_limits<double>::quiet_NaN();
  }
  BITRAIL_TRY(status);
  if (!interrupted) BITRAIL_TRY(Evaluate(&run, &summary->held_out_loss));
  if (job.report != nullptr && !interrupted) BITRAIL_TRY(job.report->Finish(*summary));
  // Nobody leaves while another rank still waits for its last messages.
  BITRAIL_TRY(Checked(bitrail_barrier(job.comm, nullptr), "end"));
  if (!interrupted) return {};
  return failure(BITRAIL_ERR_ABORTED, "interrupted after step {} of {}", run.records.back().step,
                 options.steps);
}

}  // namespace bitrail::train
