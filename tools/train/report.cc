#include "tools/train/report.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace bitrail::train {
namespace {

using nlohmann::ordered_json;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Phase MakePhase(const std::vector<StepRecord>& records, StepKind kind) {
  std::vector<double> step_ms;
  std::vector<double> compute_ms;
  std::vector<double> comm_ms;
  double bytes = 0;
  for (const StepRecord& r : records) {
    if (r.kind != kind) continue;
    step_ms.push_back(r.step_ms);
    compute_ms.push_back(r.compute_ms);
    comm_ms.push_back(r.comm_ms);
    bytes += static_cast<double>(r.wire_bytes);
  }
  Phase phase;
  phase.steps = static_cast<int64_t>(step_ms.size());
  if (phase.steps > 0) phase.wire_bytes = bytes / static_cast<double>(phase.steps);
  phase.step_ms = Median(std::move(step_ms));
  phase.compute_ms = Median(std::move(compute_ms));
  phase.comm_ms = Median(std::move(comm_ms));
  return phase;
}

const char* Name(StepKind kind) {
  switch (kind) {
    case StepKind::compressed:
      return "compressed";
    case StepKind::local:
      return "local";
    case StepKind::full:
      break;
  }
  return "full";
}

ordered_json ToJson(const StepRecord& r) {
  return {{"step", r.step},
          {"loss", r.loss},
          {"step_ms", r.step_ms},
          {"compute_ms", r.compute_ms},
          {"comm_ms", r.comm_ms},
          {"wire_bytes", r.wire_bytes},
          {"phase", Name(r.kind)},
          {"lr", r.lr},
          {"loss_scale", r.loss_scale},
          {"skipped", r.skipped}};
}

ordered_json ToJson(const Phase& p) {
  return {{"steps", p.steps},
          {"step_ms", p.step_ms},
          {"compute_ms", p.compute_ms},
          {"comm_ms", p.comm_ms},
          {"wire_bytes", p.wire_bytes}};
}

ordered_json ToJson(const Summary& s) {
  return {{"optimizer", s.optimizer},
          {"seed", s.seed},
          {"steps", s.steps},
          {"world_size", s.world_size},
          {"parameters", s.parameters},
          {"final_loss", s.final_loss},
          {"final_steps", s.final_steps},
          {"held_out_loss", s.held_out_loss},
          {"unigram_entropy", s.unigram_entropy},
          {"seconds", s.seconds},
          {"tokens_per_second", s.tokens_per_second},
          {"wire_bytes", s.wire_bytes},
          {"skipped_steps", s.skipped_steps},
          {"state_bytes", s.state_bytes},
          {"frozen_at", s.frozen_at},
          {"diverged", s.diverged},
          {"full", ToJson(s.full)},
          {"compressed", ToJson(s.compressed)},
          {"local", ToJson(s.local)},
          {"unused_positions_moved", s.unused_positions_moved}};
}

void PrintPhase(const Phase& phase, const char* what) {
  if (phase.steps == 0) return;
  fmt::print(
      "  {} steps {}: {:.1f} ms a step (compute {:.1f}, exchange and update {:.1f}), {} sent a "
      "step\n",
      phase.steps, what, phase.step_ms, phase.compute_ms, phase.comm_ms, Bytes(phase.wire_bytes));
}

}  // namespace

std::string Bytes(double bytes) {
  if (bytes >= 1e6) return fmt::format("{:.2f} MB", bytes * 1e-6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes * 1e-3);
  return fmt::format("{:.0f} B", bytes);
}

Summary Summarise(const std::vector<StepRecord>& records, int64_t tokens) {
  Summary s;
  s.steps = static_cast<int64_t>(records.size());
  s.final_steps = std::min(kFinalSteps, s.steps);
  for (const StepRecord& r : records) {
    s.seconds += r.step_ms * 1e-3;
    s.wire_bytes += static_cast<double>(r.wire_bytes);
    s.skipped_steps += r.skipped ? 1 : 0;
  }
  for (size_t i = records.size() - static_cast<size_t>(s.final_steps); i < records.size(); i++)
    s.final_loss += records[i].loss / static_cast<double>(s.final_steps);
  if (s.seconds > 0)
    s.tokens_per_second = static_cast<double>(tokens) * static_cast<double>(s.steps) / s.seconds;
  s.full = MakePhase(records, StepKind::full);
  s.compressed = MakePhase(records, StepKind::compressed);
  s.local = MakePhase(records, StepKind::local);
  return s;
}

Report::Report(File json, std::string path)
    : json_(std::move(json)), path_(std::move(path)), terminal_(isatty(STDOUT_FILENO) != 0) {}

Status Report::Create(const std::string& json, std::unique_ptr<Report>* report) {
  File file(nullptr, std::fclose);
  if (!json.empty()) {
    file.reset(std::fopen(json.c_str(), "w"));
    if (!file) return failure(BITRAIL_ERR_SYSTEM, "--json {}: {}", json, std::strerror(errno));
  }
  report->reset(new Report(std::move(file), json));
  return {};
}

void Report::Begin(const std::string& optimizer, uint64_t seed, int64_t steps,
                   int64_t print_every) {
  optimizer_ = optimizer;
  seed_ = seed;
  steps_ = steps;
  every_ = print_every > 0 ? print_every : std::max<int64_t>(1, steps / 20);
  shown_ = false;
}

Status Report::Write(const std::string& line) {
  if (!json_) return {};
  // Flushed line by line: a run that is cut short leaves what it has done.
  if (std::fputs(line.c_str(), json_.get()) < 0 || std::fputc('\n', json_.get()) == EOF ||
      std::fflush(json_.get()) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "--json {}: {}", path_, std::strerror(errno));
  return {};
}

Status Report::Step(const StepRecord& r) {
  if (terminal_ || !shown_ || r.step % every_ == 0 || r.step == steps_) {
    shown_ = true;
    fmt::print(
        "{}step {}/{}  loss {:.3f}  {:.1f} ms (compute {:.1f}, exchange {:.1f})  {} sent  {}{}{}",
        terminal_ ? "\r" : "", r.step, steps_, r.loss, r.step_ms, r.compute_ms, r.comm_ms,
        Bytes(static_cast<double>(r.wire_bytes)), Name(r.kind),
        r.skipped ? fmt::format("  skipped: overflow at loss scale {:g}", r.loss_scale) : "",
        terminal_ ? "\033[K" : "\n");
    std::fflush(stdout);
  }
  ordered_json line = ToJson(r);
  line["optimizer"] = optimizer_;
  line["seed"] = seed_;
  return Write(line.dump());
}

Status Report::Finish(const Summary& s) {
  const std::string held_out =
      std::isnan(s.held_out_loss) ? "" : fmt::format(", held-out {:.4f}", s.held_out_loss);
  fmt::print(
      "{}{}: final loss {:.4f} (mean of the last {} steps){}, unigram entropy {:.4f} nat a token; "
      "{} steps of {} ranks in {:.1f} s, {:.0f} tokens a second\n",
      terminal_ ? "\n" : "", s.optimizer, s.final_loss, s.final_steps, held_out, s.unigram_entropy,
      s.steps, s.world_size, s.seconds, s.tokens_per_second);
  PrintPhase(s.full, "in full precision");
  PrintPhase(s.compressed, "compressed");
  PrintPhase(s.local, "without exchange");
  if (s.frozen_at >= 0) fmt::print("  variance frozen at the optimizer's step {}\n", s.frozen_at);
  if (s.skipped_steps > 0)
    fmt::print("  {} steps skipped because the gradient overflowed\n", s.skipped_steps);
  fmt::print("  position rows without gradient moved by at most {:.3g}\n",
             s.unused_positions_moved);
  std::fflush(stdout);
  return Write(ordered_json{{"summary", ToJson(s)}}.dump());
}

}  // namespace bitrail::train
