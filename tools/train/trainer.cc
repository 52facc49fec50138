#include "tools/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "tools/train/corpus.h"
#include "tools/train/exchange.h"
#include "tools/train/interrupt.h"
#include "tools/train/model.h"
#include "tools/train/tokenizer.h"

namespace bitrail::train {
namespace {

// Ranks average their losses and agree on whether to stop after this many steps: rarely enough to
// cost nothing on a slow link, often enough that Ctrl-C is answered in a few seconds.
constexpr int64_t kAgreeSteps = 5;

double Milliseconds(std::chrono::steady_clock::time_point from) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
}

struct Run {
  TrainOptions options;
  uint64_t rank = 0;
  int64_t world_size = 1;
  std::vector<Token> tokens;
  double unigram_entropy = 0;
  std::unique_ptr<Model> model;
  std::vector<float> parameters, gradient;
  std::unique_ptr<Exchange> exchange;
  std::unique_ptr<Report> report;  // rank 0 only
  Batch batch;
  std::vector<StepRecord> records;
  int64_t shared = 0;  // records whose loss is averaged over the ranks already
};

Status LoadText(Run* run) {
  std::string text;
  BITRAIL_TRY(ReadCorpus(run->options.corpus, &text));
  const Tokenizer tokenizer = MakeTokenizer(text);
  run->tokens = Encode(tokenizer, text);
  Shape* shape = &run->options.shape;
  const Split split = MakeSplit(run->tokens.size());
  const auto shortest = std::min(split.train_end, split.end - split.train_end);
  if (shortest <= static_cast<size_t>(shape->sequence))
    return failure(
        BITRAIL_ERR_INVALID_ARGUMENT,
        "corpus too small: its held-out twentieth has {} tokens, --seq needs more than {}",
        shortest, shape->sequence);
  shape->vocabulary = static_cast<int64_t>(tokenizer.vocabulary);
  shape->masked = MaskedPerRow(shape->sequence);
  run->unigram_entropy = UnigramEntropy(run->tokens);
  return {};
}

Status TakeStep(Run* run, int64_t step) {
  StepRecord r;
  r.step = step;
  r.lr = LearningRate(run->options, step);
  r.compressed = run->exchange->compressed();
  const auto start = std::chrono::steady_clock::now();
  MakeBatch(run->tokens, run->options.shape,
            {run->options.seed, run->rank, static_cast<uint64_t>(step), Part::train}, &run->batch);
  BITRAIL_TRY(run->model->LossAndGradient(run->parameters.data(), run->batch, &r.loss,
                                          run->gradient.data()));
  r.compute_ms = Milliseconds(start);
  if (Status status = run->exchange->Step(r.lr, run->gradient.data(), &r.wire_bytes);
      !status.ok()) {
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
  for (size_t i = static_cast<size_t>(run->shared); i < run->records.size(); i++)
    values.push_back(static_cast<float>(run->records[i].loss));
  values.push_back(Interrupt::Caught() != 0 ? 1.0F : 0.0F);
  BITRAIL_TRY(run->exchange->Average(&values));
  *stop = values.back() > 0;
  for (size_t i = 0; i + 1 < values.size(); i++) {
    StepRecord* r = &run->records[static_cast<size_t>(run->shared++)];
    r->loss = static_cast<double>(values[i]);
    if (run->report) BITRAIL_TRY(run->report->Step(*r));
  }
  return {};
}

// Mean loss over held-out batches, other ones on each rank.
Status Evaluate(Run* run, double* loss) {
  *loss = std::numeric_limits<double>::quiet_NaN();
  if (run->options.eval_batches == 0) return {};
  double sum = 0;
  for (int64_t i = 0; i < run->options.eval_batches; i++) {
    MakeBatch(run->tokens, run->options.shape,
              {run->options.seed, run->rank, static_cast<uint64_t>(i), Part::held_out},
              &run->batch);
    double one = 0;
    BITRAIL_TRY(run->model->Loss(run->parameters.data(), run->batch, &one));
    sum += one / static_cast<double>(run->options.eval_batches);
  }
  std::vector<float> values = {static_cast<float>(sum)};
  BITRAIL_TRY(run->exchange->Average(&values));
  *loss = static_cast<double>(values[0]);
  return {};
}

double UnusedPositionsMoved(const Run& run) {
  const Layout& layout = run.model->layout();
  const Shape& shape = run.options.shape;
  const std::vector<float> start = InitialParameters(shape, layout, run.options.seed);
  float moved = 0;
  const size_t end = layout.position + static_cast<size_t>(shape.positions * shape.width);
  for (size_t i = layout.position + static_cast<size_t>(shape.sequence * shape.width); i < end; i++)
    moved = std::max(moved, std::abs(run.parameters[i] - start[i]));
  return static_cast<double>(moved);
}

void Announce(const Run& run, bitrail_comm_t comm) {
  const Shape& shape = run.options.shape;
  fmt::print(
      "{}: {} ranks, {} parameters ({} layers, width {}, {} heads), batch {} x {} tokens a rank, "
      "transport {}\n",
      Name(run.options.optimizer), run.world_size, run.parameters.size(), shape.layers, shape.width,
      shape.heads, shape.batch, shape.sequence, bitrail_comm_transport(comm));
  fmt::print("corpus: {} tokens, vocabulary {}, unigram entropy {:.4f} nat a token\n",
             run.tokens.size(), shape.vocabulary, run.unigram_entropy);
  std::fflush(stdout);
}

Status Prepare(Run* run, bitrail_comm_t comm) {
  run->rank = static_cast<uint64_t>(bitrail_comm_rank(comm));
  run->world_size = bitrail_comm_world_size(comm);
  BITRAIL_TRY(Model::Create(run->options.shape, &run->model));
  const Layout& layout = run->model->layout();
  run->parameters = InitialParameters(run->options.shape, layout, run->options.seed);
  run->gradient.resize(layout.count);
  run->records.reserve(static_cast<size_t>(run->options.steps));
  BITRAIL_TRY(Exchange::Create(comm, run->options, layout, run->parameters.data(), &run->exchange));
  if (run->rank == 0) {
    BITRAIL_TRY(Report::Create(run->options.json, run->options.steps, &run->report));
    Announce(*run, comm);
  }
  return Checked(bitrail_barrier(comm, nullptr), "start");
}

Status Loop(Run* run, bool* interrupted) {
  bool stop = false;
  for (int64_t step = 1; step <= run->options.steps && !stop; step++) {
    BITRAIL_TRY(TakeStep(run, step));
    if (step % kAgreeSteps == 0 || step == run->options.steps) BITRAIL_TRY(Agree(run, &stop));
  }
  *interrupted = static_cast<int64_t>(run->records.size()) < run->options.steps;
  return {};
}

Status TrainOn(bitrail_comm_t comm, Run* run, Summary* summary) {
  BITRAIL_TRY(Prepare(run, comm));
  bool interrupted = false;
  BITRAIL_TRY(Loop(run, &interrupted));
  double held_out = 0;
  if (!interrupted) BITRAIL_TRY(Evaluate(run, &held_out));
  *summary = Summarise(run->records);
  summary->interrupted = interrupted;
  summary->optimizer = Name(run->options.optimizer);
  summary->world_size = run->world_size;
  summary->parameters = run->parameters.size();
  summary->held_out_loss = held_out;
  summary->unigram_entropy = run->unigram_entropy;
  summary->unused_positions_moved = UnusedPositionsMoved(*run);
  if (run->report && !interrupted) BITRAIL_TRY(run->report->Finish(*summary));
  // Nobody leaves while another rank still waits for its last messages.
  BITRAIL_TRY(Checked(bitrail_barrier(comm, nullptr), "end"));
  if (!interrupted) return {};
  return failure(BITRAIL_ERR_ABORTED, "interrupted after step {} of {}", summary->steps,
                 run->options.steps);
}

}  // namespace

Status Train(const TrainOptions& options, Summary* summary) {
  *summary = {};
  BITRAIL_TRY(CheckOptions(options));
  const Interrupt interrupt;
  CommPtr comm;  // outlives the run's optimizer
  Run run;
  run.options = options;
  // Before joining: all ranks read the same file and fail alike, without waiting for each other.
  BITRAIL_TRY(LoadText(&run));
  BITRAIL_TRY(Exchange::Join(&comm));
  Status status = TrainOn(comm.get(), &run, summary);
  // A failure of this rank alone (a full disk, say) must not leave the others waiting.
  if (!status.ok() && !summary->interrupted) bitrail_comm_abort(comm.get(), status.text().c_str());
  return status;
}

}  // namespace bitrail::train
