// OneBitAdam, ZeroOneAdam and OneBitLamb against all trajectories recorded from DeepSpeed, ranks as
// threads: which gradient they ask for, when they freeze and their counters exactly, every packed
// bit by CRC, scales within 1e-6, coefficients within 1e-5, arrays within 5e-6 of the largest
// value.
#include <gtest/gtest.h>

#include <map>

#include "tests/optimizers/golden_case.h"
#include "tests/optimizers/onebit_parts.h"
#include "tests/support/onebit_view.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using nlohmann::json;
using test::Golden;
using test::GoldenCase;
using test::GoldenEntry;
using test::GoldenModel;

constexpr double kTolerance = 5e-6;

// Rank 0's state as a file would hold it.
struct Saved {
  std::map<std::string, std::vector<float>> tensors;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  int64_t step = 0;
  bool frozen = false;
};

Saved Save(bitrail_optimizer_t optimizer) {
  Saved saved;
  saved.step = optimizer->step;
  saved.frozen = optimizer->method->frozen();
  const optimizers::StateList list = optimizers::ListState(*optimizer, saved.frozen);
  for (const auto& tensor : list.tensors)
    saved.tensors[tensor.name] = {tensor.data, tensor.data + tensor.count};
  for (const auto& scalar : list.scalars) {
    if (const auto* integer = std::get_if<int64_t*>(&scalar.value)) {
      saved.integers[scalar.name] = **integer;
    } else {
      saved.numbers[scalar.name] = *std::get<double*>(scalar.value);
    }
  }
  return saved;
}

void Load(const Saved& saved, bitrail_optimizer_t optimizer) {
  const optimizers::StateList list = optimizers::ListState(*optimizer, saved.frozen);
  for (const auto& tensor : list.tensors) {
    if (tensor.error) continue;
    const std::vector<float>& values = saved.tensors.at(tensor.name);
    ASSERT_EQ(values.size(), tensor.count) << tensor.name;
    std::copy(values.begin(), values.end(), tensor.data);
  }
  for (const auto& scalar : list.scalars) {
    if (const auto* integer = std::get_if<int64_t*>(&scalar.value)) {
      **integer = saved.integers.at(scalar.name);
    } else {
      *std::get<double*>(scalar.value) = saved.numbers.at(scalar.name);
    }
  }
  ASSERT_TRUE(optimizers::StateLoaded(*optimizer, saved.step, optimizers::Loaded::reset).ok());
}

// One rank's walk through a trajectory.
struct Walk {
  const GoldenCase& of;
  const GoldenModel& model;
  int rank;
  bitrail_optimizer_t optimizer = nullptr;
  std::vector<float>& params;
  std::vector<test::OnebitSegmentView> sent, last;  // by unit: of this step, of the latest exchange
  size_t compared = 0;                              // arrays

  bitrail_error_state* errors() const { return test::ErrorsOf(optimizer); }
  bool fused() const { return of.text().at("optimizer") == "OneBitLamb"; }

  void Make(bitrail_comm_t comm, uint32_t compat) {
    optimizer = test::MakeGolden(model, comm, params.data(), compat);
    Observe();
  }
  void Observe() {
    if (errors() == nullptr) return;
    errors()->observe = [this](engine::Run& run) {
      const test::OnebitView view(run, *errors());
      for (size_t i = 0; i < errors()->layout.tensors; i++) sent.push_back(view.segment(i));
      last = sent;
    };
  }

  void ExpectArray(int step, const std::string& kind, const std::string& tensor, const float* got,
                   size_t count, double floor) {
    const Golden::Floats want = of.golden.floats(step, rank, kind, tensor);
    if (!want.found) return;
    ASSERT_EQ(want.values.size(), count) << kind << " of " << tensor;
    EXPECT_LE(test::GoldenDistance(got, want.values.data(), count, floor), kTolerance)
        << kind << " of " << tensor << " after step " << step << ", rank " << rank;
    compared++;
  }
  // Recorded are zeros for what we do not hold.
  void ExpectNone(int step, const std::string& kind, const std::string& tensor) {
    const Golden::Floats want = of.golden.floats(step, rank, kind, tensor);
    if (!want.found) return;
    EXPECT_EQ(want.values, std::vector<float>(want.values.size(), 0.0f)) << kind << " " << tensor;
    compared++;
  }

  void ExpectErrors(int step, const std::string& name, size_t unit) {
    if (errors() == nullptr || unit == SIZE_MAX) {
      ExpectNone(step, "worker_error", name);
      ExpectNone(step, "server_error", name);
      return;
    }
    const std::vector<float> worker = test::WorkerError(*errors(), unit);
    const std::vector<float> server = test::ServerError(*errors(), unit);
    // In warm-up there was no exchange, and the errors are zero.
    const double worker_floor = last.empty() ? 0 : 0.1 * last[unit].worker_scale;
    const double server_floor = last.empty() ? 0 : 0.1 * last[unit].server_scale;
    ExpectArray(step, "worker_error", name, worker.data(), worker.size(), worker_floor);
    ExpectArray(step, "server_error", name, server.data(), server.size(), server_floor);
  }

  void ExpectEntry(int step, const GoldenEntry& entry, const optimizers::StateList& list) {
    const optimizers::State& state = optimizer->state;
    const size_t at = entry.offset, count = entry.count;
    ExpectArray(step, "param", entry.name, params.data() + at, count, 0);
    ExpectArray(step, "exp_avg", entry.name, state.m.data() + at, count, 0);
    ExpectArray(step, "exp_avg_sq", entry.name, state.v.data() + at, count, 0);
    bool accumulates = false;
    for (const auto& tensor : list.tensors) {
      if (tensor.name == "exp_avg_sq_fresh" || tensor.name == "momentum_accumulator")
        ExpectArray(step, tensor.name, entry.name, tensor.data + at, count, 0);
      accumulates = accumulates || tensor.name == "momentum_accumulator";
    }
    if (!accumulates) ExpectNone(step, "momentum_accumulator", entry.name);
  }

  void ExpectSnapshot(int step) {
    const optimizers::StateList list =
        optimizers::ListState(*optimizer, optimizer->method->frozen());
    size_t unit = 0;
    for (size_t i = 0; i < model.entries.size(); i++) {
      ExpectEntry(step, model.entries[i], list);
      if (!fused()) ExpectErrors(step, model.entries[i].name, model.full[i] ? SIZE_MAX : unit++);
    }
    if (!fused()) return;
    ExpectErrors(step, "*", 0);
    std::vector<float> flat = optimizer->state.m;
    const std::vector<float>& tail = test::ExchangeOf(optimizer).tail;
    flat.insert(flat.end(), tail.begin(), tail.end());
    const size_t padding = errors() == nullptr ? 7 : 0;  // with one rank, zeros up to 8
    flat.resize((flat.size() + padding) / (padding + 1) * (padding + 1), 0.0f);
    ExpectArray(step, "exp_avg_flat", "*", flat.data(), flat.size(), 0);
  }

  void ExpectCalls(const json& calls) {
    ASSERT_EQ(calls.size(), sent.size()) << "exchanged units";
    for (size_t i = 0; i < sent.size(); i++) {
      const json& call = calls[i];  // see call_fields
      const double worker = call[2], server = call[3];
      EXPECT_EQ(call[0], errors()->layout.segments[i].count);
      EXPECT_EQ(call[1], sent[i].worker_bits.size() * 8);
      EXPECT_NEAR(sent[i].worker_scale, worker, 1e-6 * worker) << "unit " << i;
      EXPECT_NEAR(sent[i].server_scale, server, 1e-6 * server) << "unit " << i;
      EXPECT_EQ(test::GoldenCrc(sent[i].worker_bits.data(), sent[i].worker_bits.size()), call[4])
          << "unit " << i;
      EXPECT_EQ(test::GoldenCrc(sent[i].server_bits.data(), sent[i].server_bits.size()), call[5])
          << "unit " << i;
    }
  }

  void ExpectNumber(double got, const json& want, const char* name) {
    const double number = want.is_null() ? 0 : want.get<double>();
    EXPECT_NEAR(got, number, 1e-5 * std::abs(number)) << name;
  }

  void ExpectCounters(const json& log) {
    if (const auto* z = dynamic_cast<optimizers::ZeroOneAdam*>(optimizer->method.get())) {
      EXPECT_EQ(z->var_interval, log.at("var_interval"));
      EXPECT_EQ(z->var_counter, log.at("var_counter"));
      EXPECT_EQ(z->local_interval, log.at("local_step_interval"));
      EXPECT_EQ(z->local_counter, log.at("local_step_counter"));
      ExpectNumber(z->lr_sum[0], log.at("lrs"), "lrs");
    }
    const auto* lamb = dynamic_cast<optimizers::OneBitLamb*>(optimizer->method.get());
    if (lamb == nullptr) return;
    std::vector<double> factors(model.segments.size());
    ASSERT_EQ(bitrail_optimizer_lamb_coefficients(optimizer, factors.data(), factors.size()),
              BITRAIL_OK);
    for (size_t i = 0; i < factors.size(); i++) {
      const json& tensor = log.at("per_tensor").at(i);
      ExpectNumber(factors[i], log.at("lamb_coeffs").at(i), "lamb_coeffs");
      ExpectNumber(lamb->tensors[i].scaling, tensor.at("scaling_coeff"), "scaling_coeff");
      ExpectNumber(lamb->tensors[i].average, tensor.at("lamb_coeff_freeze"), "lamb_coeff_freeze");
      ExpectNumber(lamb->tensors[i].last, tensor.at("last_factor"), "last_factor");
    }
  }

  void Step(int step) {
    SCOPED_TRACE(testing::Message() << "step " << step << ", rank " << rank);
    if (of.text().contains("lr_schedule")) {
      const double lr = of.text().at("lr_schedule").at(static_cast<size_t>(step - 1));
      for (size_t group = 0; group < model.groups.size(); group++)
        ASSERT_EQ(bitrail_optimizer_set_lr(optimizer, group, lr), BITRAIL_OK);
    }
    const bool mean = bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_MEAN;
    std::vector<float> gradient = model.Gradient(step, static_cast<size_t>(rank), mean);
    const std::vector<float> untouched = gradient;
    sent.clear();
    ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK)
        << bitrail_last_error();
    EXPECT_EQ(gradient, untouched);
    for (const auto& log : of.text().at("log")) {  // of ranks 0 and 1
      if (log.value("step", -1) != step || log.at("rank") != rank) continue;
      EXPECT_EQ(log.at("grad"), mean ? "mean" : "local");
      EXPECT_EQ(log.at("opt_step"), bitrail_optimizer_step_count(optimizer));
      EXPECT_EQ(log.at("frozen"), bitrail_optimizer_frozen(optimizer) != 0);
      const bool next = bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_MEAN;
      EXPECT_EQ(log.at("next_grad"), next ? "mean" : "local");
      ExpectCalls(log.at("calls"));
      ExpectCounters(log);
    }
    ExpectSnapshot(step);
  }
};

struct Trajectory {
  std::string name;
  uint32_t compat = BITRAIL_COMPAT_DEEPSPEED;
  bool equal = true;  // what replicas are at the end, bit for bit
};

class Golden25 : public ::testing::TestWithParam<Trajectory> {};

TEST_P(Golden25, Trajectory) {
  const GoldenCase of(GetParam().name);
  const GoldenModel model(of, of.text().value("mask_kind", 0));
  const GoldenModel reloaded(of, of.text().value("mask_kind_after_load", 0));
  const int load_after = of.after("load_after");
  std::vector<std::vector<float>> params(of.world(), model.Gather(of.initial.data()));
  Saved saved;
  test::World(static_cast<int>(of.world())).run([&](int rank, bitrail_comm_t comm) {
    Walk walk{of, model, rank, nullptr, params[static_cast<size_t>(rank)], {}, {}, 0};
    walk.Make(comm, GetParam().compat);
    for (int step = 1; step <= of.steps(); step++) {
      walk.Step(step);
      if (step == of.after("save_after") && rank == 0) saved = Save(walk.optimizer);
      if (step != load_after) continue;
      ASSERT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK);
      if (of.text().at("load_mode") == "fresh") {
        EXPECT_EQ(bitrail_optimizer_destroy(walk.optimizer), BITRAIL_OK);
        walk.optimizer = test::MakeGolden(reloaded, comm, walk.params.data(), GetParam().compat);
        walk.Observe();
      }
      Load(saved, walk.optimizer);
      for (const auto& log : of.text().at("log")) {
        if (!log.contains("event") || log.at("rank") != rank) continue;
        const bool mean = bitrail_optimizer_gradient(walk.optimizer) == BITRAIL_GRADIENT_MEAN;
        EXPECT_EQ(log.at("next_grad"), mean ? "mean" : "local") << "after the load";
      }
    }
    size_t recorded = 0;
    for (const auto& array : of.text().at("arrays")) recorded += array.at("rank") == rank;
    EXPECT_EQ(walk.compared, recorded);
    EXPECT_EQ(bitrail_optimizer_destroy(walk.optimizer), BITRAIL_OK);
  });
  if (!GetParam().equal) return;
  for (const std::vector<float>& other : params) EXPECT_EQ(other, params[0]) << "ranks differ";
}

constexpr uint32_t kNone = 0;

INSTANTIATE_TEST_SUITE_P(
    , Golden25,
    ::testing::Values(
        Trajectory{"adam_w1"}, Trajectory{"adam_w2"}, Trajectory{"adam_w3"}, Trajectory{"adam_w4"},
        Trajectory{"adam_w2_freeze1"}, Trajectory{"adam_w4_flat_sched"},
        Trajectory{"adam_w2_noinit"}, Trajectory{"adam_w2_nonfreeze"},
        Trajectory{"adam_w2_ckpt_back"}, Trajectory{"adam_w2_ckpt_comp"}, Trajectory{"zo_w1"},
        Trajectory{"zo_w2", BITRAIL_COMPAT_DEEPSPEED, false},
        Trajectory{"zo_w4", BITRAIL_COMPAT_DEEPSPEED, false},
        Trajectory{"zo_w2_unit", BITRAIL_COMPAT_DEEPSPEED, false},
        Trajectory{"zo_w4_flat_sched", BITRAIL_COMPAT_DEEPSPEED, false},
        Trajectory{"zo_w2_ckpt_pre", BITRAIL_COMPAT_DEEPSPEED, false},
        Trajectory{"zo_w2_ckpt_post", BITRAIL_COMPAT_DEEPSPEED, false}, Trajectory{"lamb_w1"},
        Trajectory{"lamb_w2"}, Trajectory{"lamb_w4"}, Trajectory{"lamb_w2_clamps"},
        Trajectory{"lamb_w2_freeze1"}, Trajectory{"lamb_w2_wd0_defaults"},
        Trajectory{"lamb_w2_ckpt_back"}, Trajectory{"lamb_w2_ckpt_comp"},
        // Without any fault: where none is touched the numbers are the same.
        Trajectory{"adam_w2", kNone}, Trajectory{"adam_w4", kNone},
        Trajectory{"adam_w4_flat_sched", kNone}, Trajectory{"adam_w2_nonfreeze", kNone},
        Trajectory{"lamb_w2_wd0_defaults", kNone}),
    [](const auto& one) {
      return one.param.name + (one.param.compat == kNone ? "_without_compat" : "");
    });

}  // namespace
}  // namespace bitrail
