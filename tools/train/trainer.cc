#include "tools/train/trainer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "tools/train/batch.h"
#include "tools/train/comparison.h"
#include "tools/train/corpus.h"
#include "tools/train/exchange.h"
#include "tools/train/interrupt.h"
#include "tools/train/run.h"
#include "tools/train/tokenizer.h"

namespace bitrail::train {
namespace {

Status LoadText(TrainOptions* options, Job* job) {
  std::string text;
  BITRAIL_TRY(ReadCorpus(options->corpus, &text));
  const Tokenizer tokenizer = MakeTokenizer(text);
  job->tokens = Encode(tokenizer, text);
  Shape* shape = &options->shape;
  const Split split = MakeSplit(job->tokens.size());
  const auto shortest = std::min(split.train_end, split.end - split.train_end);
  if (shortest <= static_cast<size_t>(shape->sequence))
    return failure(
        BITRAIL_ERR_INVALID_ARGUMENT,
        "corpus too small: its held-out twentieth has {} tokens, --seq needs more than {}",
        shortest, shape->sequence);
  shape->vocabulary = static_cast<int64_t>(tokenizer.vocabulary);
  shape->masked = MaskedPerRow(shape->sequence);
  job->unigram_entropy = UnigramEntropy(job->tokens);
  return {};
}

// comm_backend_name "mpi" promises ranks from MPI or PMIx.
Status CheckLauncher(const TrainOptions& options, bitrail_comm_t comm) {
  const std::string_view launcher = bitrail_comm_launcher(comm);
  if (options.comm_backend != "mpi" || launcher == "pmix" || launcher == "hydra") return {};
  return failure(BITRAIL_ERR_CONFIG,
                 "comm_backend_name mpi: ranks shall come from MPI or PMIx, but these come from "
                 "'{}'. Start them with mpirun or srun, or say nccl",
                 launcher);
}

// Every run of the job: each seed with each optimizer, lamb added where only it is a fair baseline.
std::vector<TrainOptions> Runs(const TrainOptions& options) {
  std::vector<OptimizerKind> kinds = options.compare;
  if (kinds.empty()) kinds = {options.optimizer};
  const auto has = [&](OptimizerKind kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  if (kinds.size() > 1 && has(OptimizerKind::onebit_lamb) && !has(OptimizerKind::lamb))
    kinds.push_back(OptimizerKind::lamb);
  std::vector<TrainOptions> runs;
  for (int64_t seed = 0; seed < options.seeds; seed++) {
    for (const OptimizerKind kind : kinds) {
      runs.push_back(options);
      runs.back().optimizer = kind;
      runs.back().eval_seed = options.seed;
      runs.back().seed = options.seed + static_cast<uint64_t>(seed);
    }
  }
  return runs;
}

Status WriteFile(const std::string& path, const std::string& text) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "--plot {}: {}", path, std::strerror(errno));
  return {};
}

Status ShowComparison(const TrainOptions& options, const std::vector<RunResult>& results,
                      Report* report) {
  const Plot plot = LossPlot(results);
  const std::vector<Row> rows = Compare(results);
  if (results.size() > 1) {
    fmt::print("{}\n{}", Table(rows, results), TextPlot(plot, 72, 18));
    std::fflush(stdout);
    BITRAIL_TRY(report->Write(ComparisonJson(rows)));
  }
  if (options.plot.empty()) return {};
  return WriteFile(options.plot, SvgPlot(plot));
}

// A rank whose gradient is not finite is refused together with all others, so that in a comparison
// they go on to the next run together.
Status RunAll(const Job& job, const TrainOptions& options, bool* interrupted) {
  const std::vector<TrainOptions> runs = Runs(options);
  std::vector<RunResult> results;
  for (const TrainOptions& one : runs) {
    std::vector<StepRecord> records;
    RunResult result;
    result.optimizer = one.optimizer;
    Status status = RunTraining(job, one, &result.summary, &records);
    *interrupted = result.summary.interrupted;
    if (!status.ok() && (runs.size() == 1 || !result.summary.diverged)) return status;
    if (!status.ok() && job.report != nullptr) fmt::print("{}\n", status.text());
    for (const StepRecord& record : records) result.loss.push_back(record.loss);
    results.push_back(std::move(result));
  }
  if (job.report == nullptr) return {};
  return ShowComparison(options, results, job.report);
}

Status TrainOn(Job* job, TrainOptions* options, bool* interrupted) {
  BITRAIL_TRY(CheckLauncher(*options, job->comm));
  BITRAIL_TRY(ResolveBatch(bitrail_comm_world_size(job->comm), options));
  std::unique_ptr<Report> report;
  if (bitrail_comm_rank(job->comm) == 0) {
    BITRAIL_TRY(Report::Create(options->json, &report));
    for (const std::string& note : options->notes) fmt::print("note: {}\n", note);
  }
  job->report = report.get();
  return RunAll(*job, *options, interrupted);
}

}  // namespace

Status Train(const TrainOptions& asked, bool* interrupted) {
  *interrupted = false;
  TrainOptions options = asked;
  BITRAIL_TRY(CheckOptions(options));
  const Interrupt interrupt;
  Job job;
  // Before joining: all ranks read the same file and fail alike, without waiting for each other.
  BITRAIL_TRY(LoadText(&options, &job));
  CommPtr comm;
  BITRAIL_TRY(Join(&comm));
  job.comm = comm.get();
  Status status = TrainOn(&job, &options, interrupted);
  // A failure of this rank alone (a full disk, say) must not leave the others waiting.
  if (!status.ok() && !*interrupted) bitrail_comm_abort(comm.get(), status.text().c_str());
  return status;
}

}  // namespace bitrail::train
