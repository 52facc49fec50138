// OneBitAdam against trajectories recorded from DeepSpeed, ranks as threads: which gradient it asks
// for and when it freezes exactly, every packed bit by CRC, scales within 1e-6, parameters,
// momenta, variances and errors within 5e-6 of the largest value.
#include <gtest/gtest.h>

#include "optimizers/optimizer.h"
#include "tests/support/golden.h"
#include "tests/support/onebit_view.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using nlohmann::json;
using test::Golden;

constexpr size_t kBankRanks = 4;
constexpr double kTolerance = 5e-6;

// A recorded trajectory and everything that all have in common.
struct Case {
  Golden golden;
  json index = test::ReadGoldenIndex();
  std::vector<float> initial = test::ReadGoldenFloats("init_params.f32");
  std::vector<float> bank = test::ReadGoldenFloats("grads.f32");
  std::vector<float> masks = test::ReadGoldenFloats("masks.f32");

  explicit Case(const std::string& name) : golden(test::ReadGolden("traj/" + name)) {}
  const json& text() const { return golden.text; }
  size_t world() const { return text().at("world"); }
  size_t elements() const { return initial.size(); }
  size_t count(const std::string& tensor) const {
    for (const auto& entry : index.at("tensors")) {
      if (entry.at("name") == tensor) return entry.at("count");
    }
    throw std::runtime_error("no tensor " + tensor);
  }
};

// Segments in the order of the groups, which is the order of the tensors.
struct Model {
  std::vector<bitrail_param_group_t> groups;
  std::vector<bitrail_param_segment_t> segments;
  std::vector<std::string> names;

  explicit Model(const Case& of) {
    const bool flat = of.text().value("flat", false);
    for (const auto& from : of.text().at("groups")) {
      bitrail_param_group_t group = {};
      group.struct_size = sizeof group;
      group.lr = of.text().at("params").at("lr");
      group.beta1 = 0.9;
      group.beta2 = 0.999;
      group.eps = 1e-8;
      group.weight_decay = from.at("weight_decay");
      const float* mask = from.value("mask", false) ? of.masks.data() : nullptr;
      std::string joined;
      size_t total = 0;
      for (const auto& tensor : from.at("tensors")) {
        const std::string name = tensor;
        const size_t count = of.count(name);
        if (!flat) {
          segments.push_back({count, groups.size(), mask});
          names.push_back(name);
        }
        joined += (joined.empty() ? "" : "+") + name;
        total += count;
      }
      if (flat) {
        segments.push_back({total, groups.size(), mask});
        names.push_back(joined);
      }
      groups.push_back(group);
    }
  }
};

std::vector<float> Gradient(const Case& of, int step, size_t rank, bool mean) {
  const size_t n = of.elements();
  const size_t steps = of.bank.size() / n / kBankRanks;
  const size_t row =
      (static_cast<size_t>(step - 1) + of.text().at("grad_shift").get<size_t>()) % steps;
  const auto of_rank = [&](size_t r) { return of.bank.data() + (row * kBankRanks + r) * n; };
  std::vector<float> gradient(of_rank(rank), of_rank(rank) + n);
  if (!mean) return gradient;
  const float share = 1.0f / static_cast<float>(of.world());
  for (size_t i = 0; i < n; i++) {
    float sum = of_rank(0)[i];
    for (size_t r = 1; r < of.world(); r++) sum += of_rank(r)[i];
    gradient[i] = sum * share;
  }
  return gradient;
}

// One rank's walk through a trajectory.
struct Walk {
  const Case& of;
  const Model& model;
  int rank;
  bitrail_optimizer_t optimizer;
  const std::vector<float>& params;
  std::vector<test::OnebitSegmentView> sent;  // by segment, of the last step
  size_t compared = 0;                        // arrays

  bitrail_error_state* errors() const { return optimizer->onebit->errors.get(); }

  void ExpectArray(int step, const std::string& kind, const std::string& tensor, const float* got,
                   size_t count, double floor) {
    const Golden::Floats want = of.golden.floats(step, rank, kind, tensor);
    if (!want.found) return;
    ASSERT_EQ(want.values.size(), count) << kind << " of " << tensor;
    EXPECT_LE(test::GoldenDistance(got, want.values.data(), count, floor), kTolerance)
        << kind << " of " << tensor << " after step " << step << ", rank " << rank;
    compared++;
  }

  // With one rank there are no errors; recorded are the zeros of the init call.
  void ExpectNoError(int step, const std::string& kind, const std::string& tensor) {
    const Golden::Floats want = of.golden.floats(step, rank, kind, tensor);
    if (!want.found) return;
    EXPECT_EQ(want.values, std::vector<float>(want.values.size(), 0.0f));
    compared++;
  }

  void ExpectSnapshot(int step) {
    const optimizers::State& state = optimizer->state;
    for (size_t i = 0; i < model.names.size(); i++) {
      const std::string& name = model.names[i];
      const size_t at = state.segments[i].offset, count = state.segments[i].count;
      ExpectArray(step, "param", name, params.data() + at, count, 0);
      ExpectArray(step, "exp_avg", name, state.m.data() + at, count, 0);
      ExpectArray(step, "exp_avg_sq", name, state.v.data() + at, count, 0);
      if (errors() == nullptr) {
        ExpectNoError(step, "worker_error", name);
        ExpectNoError(step, "server_error", name);
        continue;
      }
      const std::vector<float> worker = test::WorkerError(*errors(), i);
      const std::vector<float> server = test::ServerError(*errors(), i);
      // In warm-up there was no exchange, and the errors are zero.
      const double worker_floor = sent.empty() ? 0 : 0.1 * sent[i].worker_scale;
      const double server_floor = sent.empty() ? 0 : 0.1 * sent[i].server_scale;
      ExpectArray(step, "worker_error", name, worker.data(), worker.size(), worker_floor);
      ExpectArray(step, "server_error", name, server.data(), server.size(), server_floor);
    }
  }

  void ExpectCalls(const json& calls) {
    ASSERT_EQ(calls.size(), sent.size()) << "exchanged segments";
    for (size_t i = 0; i < sent.size(); i++) {
      const json& call = calls[i];  // see call_fields
      const double worker = call[2], server = call[3];
      EXPECT_EQ(call[0], optimizer->state.segments[i].count);
      EXPECT_EQ(call[1], sent[i].worker_bits.size() * 8);
      EXPECT_NEAR(sent[i].worker_scale, worker, 1e-6 * worker) << model.names[i];
      EXPECT_NEAR(sent[i].server_scale, server, 1e-6 * server) << model.names[i];
      EXPECT_EQ(test::GoldenCrc(sent[i].worker_bits.data(), sent[i].worker_bits.size()), call[4])
          << model.names[i];
      EXPECT_EQ(test::GoldenCrc(sent[i].server_bits.data(), sent[i].server_bits.size()), call[5])
          << model.names[i];
    }
  }

  void Step(int step) {
    SCOPED_TRACE(testing::Message() << "step " << step << ", rank " << rank);
    const auto& schedule = of.text();
    if (schedule.contains("lr_schedule")) {
      const double lr = schedule.at("lr_schedule").at(static_cast<size_t>(step - 1));
      for (size_t group = 0; group < model.groups.size(); group++) {
        ASSERT_EQ(bitrail_optimizer_set_lr(optimizer, group, lr), BITRAIL_OK);
      }
    }
    const bool mean = bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_MEAN;
    sent.clear();
    ASSERT_EQ(bitrail_optimizer_step(optimizer,
                                     Gradient(of, step, static_cast<size_t>(rank), mean).data()),
              BITRAIL_OK)
        << bitrail_last_error();
    for (const auto& log : of.text().at("log")) {  // of ranks 0 and 1
      if (log.at("step") != step || log.at("rank") != rank) continue;
      EXPECT_EQ(log.at("grad"), mean ? "mean" : "local");
      EXPECT_EQ(log.at("opt_step"), bitrail_optimizer_step_count(optimizer));
      EXPECT_EQ(log.at("frozen"), bitrail_optimizer_frozen(optimizer) != 0);
      const bool next = bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_MEAN;
      EXPECT_EQ(log.at("next_grad"), next ? "mean" : "local");
      ExpectCalls(log.at("calls"));
    }
    ExpectSnapshot(step);
  }
};

class OneBitAdamGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(OneBitAdamGolden, Trajectory) {
  const Case of(GetParam());
  const Model model(of);
  const int world = static_cast<int>(of.world());
  std::vector<std::vector<float>> params(of.world(), of.initial);
  test::World ranks(world);
  ranks.run([&](int rank, bitrail_comm_t comm) {
    std::vector<float>& own = params[static_cast<size_t>(rank)];
    bitrail_optimizer_options_t options = {};
    options.struct_size = sizeof options;
    options.params = own.data();
    options.segments = model.segments.size();
    options.segment = model.segments.data();
    options.groups = model.groups.size();
    options.group = model.groups.data();
    options.freeze_step = of.text().at("params").at("freeze_step");
    options.init_call = 1;
    bitrail_optimizer_t optimizer = nullptr;
    ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &options), BITRAIL_OK)
        << bitrail_last_error();
    Walk walk{of, model, rank, optimizer, own, {}, 0};
    if (walk.errors() != nullptr) {
      walk.errors()->observe = [&walk](engine::Run& run) {
        const test::OnebitView view(run, *walk.errors());
        for (size_t i = 0; i < walk.model.names.size(); i++) walk.sent.push_back(view.segment(i));
      };
    }
    for (int step = 1; step <= of.text().at("steps").get<int>(); step++) walk.Step(step);
    size_t recorded = 0;
    for (const auto& array : of.text().at("arrays")) recorded += array.at("rank") == rank;
    EXPECT_EQ(walk.compared, recorded);
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
  for (const std::vector<float>& other : params) EXPECT_EQ(other, params[0]) << "ranks differ";
}

INSTANTIATE_TEST_SUITE_P(, OneBitAdamGolden,
                         ::testing::Values("adam_w1", "adam_w2", "adam_w3", "adam_w4",
                                           "adam_w2_freeze1", "adam_w4_flat_sched"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace bitrail
