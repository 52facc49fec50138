// Memory and volume: the optimizers themselves, through the C API.
#include <fstream>

#include "tools/bitrail/bench_job.h"
#include "tools/bitrail/bench_optimizers.h"

namespace bitrail::tools {
namespace {

struct Subject {
  bitrail_optimizer_t optimizer = nullptr;
  std::vector<float> params;

  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  ~Subject() { (void)bitrail_optimizer_destroy(optimizer); }
};

Status Make(const Job& job, const std::string& name, int64_t freeze, Subject* subject) {
  using Create = bitrail_status_t (*)(bitrail_optimizer_t*, bitrail_comm_t,
                                      const bitrail_optimizer_options_t*);
  Create create = nullptr;
  if (name == "onebit-adam") create = bitrail_onebit_adam_create;
  if (name == "zero-one-adam") create = bitrail_zero_one_adam_create;
  if (name == "onebit-lamb") create = bitrail_onebit_lamb_create;
  if (create == nullptr) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "optimizer {}: onebit-adam, zero-one-adam or onebit-lamb expected", name);
  }
  const bitrail_param_segment_t segment = {subject->params.size(), 0, nullptr};
  const bitrail_param_group_t group = {sizeof group, 1e-4, 0.9, 0.999, 1e-8, 0.01, 0};
  bitrail_optimizer_options_t options = {};
  options.struct_size = sizeof options;
  options.params = subject->params.data();
  options.segments = options.groups = 1;
  options.segment = &segment;
  options.group = &group;
  options.freeze_step = freeze;
  options.init_call = 1;  // as DeepSpeed counts
  return Check(create(&subject->optimizer, job.comm, &options));
}

// Bytes of a line of /proc/self/status.
uint64_t StatusLine(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    uint64_t kib = 0;
    if (word == name + ":" && file >> kib) return kib * 1024;
  }
  return 0;
}

// Equal gradients need no exchange, so the memory of one is not counted.
Status Memory(const Job& job, const std::string& name, uint64_t parameters,
              nlohmann::json* result) {
  Subject subject;
  subject.params.assign(parameters, 0.5f);
  const std::vector<float> gradient(parameters, 0.25f);
  BITRAIL_TRY(Check(bitrail_barrier(job.comm, nullptr)));
  const uint64_t before = StatusLine("VmRSS");
  BITRAIL_TRY(Make(job, name, 2, &subject));
  for (int i = 0; i < 5; i++)
    BITRAIL_TRY(Check(bitrail_optimizer_step(subject.optimizer, gradient.data())));
  const uint64_t peak = StatusLine("VmHWM");
  if (bitrail_optimizer_frozen(subject.optimizer) == 0)
    return Status(BITRAIL_ERR_INTERNAL, "still not frozen");
  *result = {{"peak", peak - before},
             {"state", bitrail_optimizer_state_bytes(subject.optimizer)},
             {"parameters", parameters}};
  return {};
}

// Compressed exchanges send P (W - 1) / (4 W) bytes and more; what else a local step sends is a
// few bytes to agree that all is finite.
Status Volume(const Job& job, const std::string& name, int64_t steps, int64_t freeze,
              nlohmann::json* result) {
  constexpr size_t kElements = 1024;
  Subject subject;
  subject.params.assign(kElements, 0.5f);
  const std::vector<float> gradient(kElements, 0.25f);
  BITRAIL_TRY(Make(job, name, freeze, &subject));
  int64_t full = 0, onebit = 0, skipped = 0;
  bitrail_counters_t before, after;
  BITRAIL_TRY(Counters(job, &before));
  const int64_t first = bitrail_optimizer_step_count(subject.optimizer);  // the init call's: free
  for (int64_t step = first; step < steps; step++) {
    const bool mean = bitrail_optimizer_gradient(subject.optimizer) == BITRAIL_GRADIENT_MEAN;
    BITRAIL_TRY(Check(bitrail_optimizer_step(subject.optimizer, gradient.data())));
    BITRAIL_TRY(Counters(job, &after));
    const uint64_t sent = after.wire_bytes_sent - before.wire_bytes_sent;
    before = after;
    (mean ? full : sent >= kElements / 16 ? onebit : skipped)++;
  }
  *result = {{"full", full}, {"onebit", onebit}, {"skipped", skipped}};
  return {};
}

}  // namespace

int BenchMemory(const std::string& optimizer, uint64_t parameters) {
  return RunJob("memory", [&](Job& job, nlohmann::json* result) {
    return Memory(job, optimizer, parameters, result);
  });
}

int BenchVolume(const std::string& optimizer, int64_t steps, int64_t freeze) {
  return RunJob("volume", [&](Job& job, nlohmann::json* result) -> Status {
    if (job.ranks == 1) return Status(BITRAIL_ERR_UNSUPPORTED, "one process exchanges nothing");
    return Volume(job, optimizer, steps, freeze, result);
  });
}

}  // namespace bitrail::tools
