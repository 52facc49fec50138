// Optimizers whose exchange is hierarchical: training like the flat one, checkpoints between forms
// and placements.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "optimizers/checkpoint/save.h"
#include "optimizers/error_form.h"
#include "tests/engine/onebit_nodes.h"
#include "tests/optimizers/checkpoint_support.h"
#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using test::Kind;
using test::Placement;
using test::RunOnNodes;
using test::SmallModel;

constexpr bitrail_checkpoint_options_t kExact = {sizeof(bitrail_checkpoint_options_t),
                                                 BITRAIL_ERRORS_EXACT};

struct Job {
  const char* name;
  const char* algorithm;
  Placement placement;
};

std::vector<Job> Jobs() {
  return {{"flat", "onebit_direct", topology::place_blocks(4, 2)},
          {"hier", "onebit_hier", topology::place_blocks(4, 2)},
          {"cyclic", "onebit_hier", topology::place_cyclic(4, 2)},
          {"leader", "onebit_leader", topology::place_blocks(4, 2)},
          {"uneven", "onebit_hier", topology::place_ranks({0, 0, 0, 1, 1})},
          {"three", "onebit_hier", topology::place_blocks(6, 2)},
          {"two", "onebit_direct", topology::place_blocks(2, 2)}};
}

void Configure(SmallModel* model) {
  static const bitrail_zero_one_t intervals = test::ShortIntervals();
  model->options.zero_one = &intervals;
  model->options.freeze_step = 6;
}

// Steps first..last; loads before, saves behind. The parameters of rank 0.
std::vector<float> Train(const Kind& kind, const Job& job, int first, int last,
                         const std::string& load, const std::string& save) {
  std::vector<std::vector<float>> params(job.placement.node.size());
  RunOnNodes(job.placement, job.algorithm, [&](int rank, bitrail_comm_t comm) {
    SmallModel model;
    Configure(&model);
    bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
    if (!load.empty()) {
      ASSERT_EQ(bitrail_optimizer_load(optimizer, load.c_str(), &kExact), BITRAIL_OK)
          << bitrail_last_error();
    }
    for (int step = first; step <= last; step++) test::Step(optimizer, comm, step);
    if (!save.empty()) {
      ASSERT_EQ(bitrail_optimizer_save(optimizer, save.c_str(), nullptr), BITRAIL_OK)
          << bitrail_last_error();
    }
    EXPECT_EQ(test::ExchangeOf(optimizer).errors->algorithm->name, job.algorithm);
    if (optimizer->method->replicas_equal()) params[static_cast<size_t>(rank)] = model.params;
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
  for (const std::vector<float>& one : params) EXPECT_EQ(one, params[0]) << job.name;
  return params[0];
}

class Nodes : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, Nodes, ::testing::ValuesIn(test::OneBitKinds()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(Nodes, ExactGoesOnBitForBit) {
  for (const Job& job : Jobs()) {
    const std::vector<float> whole = Train(GetParam(), job, 1, 20, "", "");
    const test::TemporaryDirectory place;
    Train(GetParam(), job, 1, 11, "", place / "c");
    EXPECT_EQ(Train(GetParam(), job, 12, 20, place / "c", ""), whole) << job.name;
  }
}

TEST_P(Nodes, GoOnInAnotherForm) {
  const test::TemporaryDirectory place;
  const std::vector<Job> jobs = Jobs();
  Train(GetParam(), jobs[0], 1, 11, "", place / "c");
  int step = 12;
  for (const Job& job : jobs) {
    for (const float x : Train(GetParam(), job, step, step + 2, place / "c", place / "c"))
      ASSERT_TRUE(std::isfinite(x)) << job.name;
    step += 3;
  }
}

// Errors of all ranks, and what they owe to each element: the mean of what its coders hold, and
// what its server holds.
struct Held {
  struct Rank {
    std::vector<float> worker, server;
    uint64_t first_chunk = 0, chunks = 0, own_chunk = 0;
  };
  engine::OnebitLayout layout;
  size_t tail = 0;
  std::vector<Rank> ranks;

  void Owed(std::vector<double>* worker, std::vector<float>* server) const {
    for (size_t t = 0; t < layout.tensors; t++) {
      const engine::Segment& segment = layout.segments[t];
      for (uint64_t i = 0; i + tail < segment.count; i++) {
        const uint64_t chunk = i / segment.chunk;
        const uint64_t at = segment.chunk_offset + i % segment.chunk;
        worker->push_back(0);
        for (const Rank& rank : ranks) {
          if (rank.chunks == 0) continue;
          if (chunk >= rank.first_chunk && chunk < rank.first_chunk + rank.chunks)
            worker->back() +=
                static_cast<double>(rank.worker[(chunk - rank.first_chunk) * layout.chunk + at]) /
                layout.voices();
          if (chunk == rank.own_chunk) server->push_back(rank.server[at]);
        }
      }
    }
  }
};

void Take(bitrail_optimizer_t optimizer, int rank, Held* held) {
  static std::mutex mutex;
  const optimizers::Exchange& exchange = test::ExchangeOf(optimizer);
  const bitrail_error_state& errors = *exchange.errors;
  const std::lock_guard lock(mutex);
  held->layout = errors.layout;
  held->tail = exchange.tail.size();
  held->ranks[static_cast<size_t>(rank)] = {errors.worker, errors.server, errors.first_chunk,
                                            errors.chunks, errors.own_chunk};
}

TEST(Respread, KeepsWhatIsOwedBetweenAllForms) {
  for (const Kind& kind : {test::kOneBitAdam, test::kOneBitLamb}) {
    for (const Job& from : Jobs()) {
      const test::TemporaryDirectory place;
      Held before;
      before.ranks.resize(from.placement.node.size());
      RunOnNodes(from.placement, from.algorithm, [&](int rank, bitrail_comm_t comm) {
        SmallModel model;
        Configure(&model);
        bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
        for (int step = 1; step <= 8; step++) test::Step(optimizer, comm, step);
        bitrail_error_state& errors = *test::ExchangeOf(optimizer).errors;
        errors.worker = test::Noise(errors.worker.size(), static_cast<uint32_t>(rank));
        errors.server = test::Noise(errors.server.size(), 100 + static_cast<uint32_t>(rank));
        Take(optimizer, rank, &before);
        ASSERT_EQ(bitrail_optimizer_save(optimizer, (place / "c").c_str(), nullptr), BITRAIL_OK)
            << bitrail_last_error();
        EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
      });
      std::vector<double> owed;
      std::vector<float> served;
      before.Owed(&owed, &served);
      ASSERT_EQ(owed.size(), SmallModel::kElements);
      for (const Job& to : Jobs()) {
        Held after;
        after.ranks.resize(to.placement.node.size());
        RunOnNodes(to.placement, to.algorithm, [&](int rank, bitrail_comm_t comm) {
          SmallModel model;
          Configure(&model);
          bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
          ASSERT_EQ(bitrail_optimizer_load(optimizer, (place / "c").c_str(), &kExact), BITRAIL_OK)
              << bitrail_last_error();
          Take(optimizer, rank, &after);
          EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
        });
        std::vector<double> owes;
        std::vector<float> serves;
        after.Owed(&owes, &serves);
        EXPECT_EQ(serves, served) << kind.name << " " << from.name << " to " << to.name;
        ASSERT_EQ(owes.size(), owed.size());
        double worst = 0;
        for (size_t i = 0; i < owed.size(); i++)
          worst = std::max(worst, std::abs(owes[i] - owed[i]));
        EXPECT_LT(worst, 1e-6) << kind.name << " " << from.name << " to " << to.name;
      }
    }
  }
}

// What ranks say of their places must fit together.
TEST(ErrorForm, RefusesContradictions) {
  struct Case {
    const char* what;
    std::vector<optimizers::ErrorPlace> places;
    bool good;
  };
  const Case cases[] = {
      {"good", {{1, 2, 0}, {1, 2, 1}, {1, 2, -1}}, true},
      {"a chunk twice", {{1, 2, 0}, {1, 2, 0}, {1, 2, -1}}, false},
      {"a chunk nowhere", {{1, 2, 0}, {1, 2, -1}, {1, 2, -1}}, false},
      {"a chunk too many", {{1, 2, 0}, {1, 2, 1}, {1, 2, 2}}, false},
      {"a chunk below none", {{1, 2, 0}, {1, 2, 1}, {1, 2, -2}}, false},
      {"other rails", {{1, 2, 0}, {2, 2, 1}, {1, 2, -1}}, false},
      {"no rails", {{0, 2, 0}, {0, 2, 1}, {0, 2, -1}}, false},
      {"rails that do not divide", {{2, 3, 0}, {2, 3, 1}, {2, 3, 2}}, false},
      {"more chunks than ranks", {{1, 4, 0}, {1, 4, 1}, {1, 4, 2}}, false},
      {"huge", {{1, int64_t{1} << 60, 0}, {1, int64_t{1} << 60, 1}, {1, 2, 2}}, false},
  };
  for (const Case& one : cases) {
    const test::TemporaryDirectory place;
    test::World(3).run([&](int rank, bitrail_comm_t comm) {
      checkpoint::Content content;
      content.optimizer = "onebit-adam";
      content.tensors = {optimizers::TensorOf(one.places[static_cast<size_t>(rank)])};
      ASSERT_TRUE(checkpoint::Save(comm, place / "c", content).ok());
      checkpoint::Checkpoint opened;
      ASSERT_TRUE(checkpoint::Open(comm, place / "c", &opened).ok());
      optimizers::ErrorForm form;
      const Status status = optimizers::ReadForm(opened, &form);
      EXPECT_EQ(status.ok(), one.good) << one.what;
      if (!one.good) {
        EXPECT_EQ(status.code(), BITRAIL_ERR_MISMATCH);
      }
      if (one.good) {
        EXPECT_EQ(form.holders, (std::vector<int>{0, 1}));
      }
    });
  }
}

// A quadratic with a target, each rank's gradient with noise of its own: how far from the target it
// ends.
double Distance(const Job& job) {
  double distance = 0;
  RunOnNodes(job.placement, job.algorithm, [&](int rank, bitrail_comm_t comm) {
    SmallModel model;
    model.group.lr = 0.003;
    model.options.freeze_step = 300;
    bitrail_optimizer_t optimizer = test::Make(test::kOneBitAdam, comm, model.options);
    const std::vector<float> target = test::Noise(SmallModel::kElements, 7);
    for (int step = 1; step <= 2000; step++) {
      std::vector<float> gradient = SmallModel::Gradient(step, rank);
      for (size_t i = 0; i < gradient.size(); i++) gradient[i] += model.params[i] - target[i];
      if (bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_MEAN) {
        ASSERT_EQ(bitrail_allreduce(comm, gradient.data(), gradient.data(), gradient.size(),
                                    BITRAIL_FLOAT32, BITRAIL_AVG, nullptr),
                  BITRAIL_OK);
      }
      ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
    }
    if (rank == 0) {
      for (size_t i = 0; i < target.size(); i++)
        distance += std::pow(static_cast<double>(model.params[i] - target[i]), 2);
      distance = std::sqrt(distance / static_cast<double>(target.size()));
    }
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
  return distance;
}

TEST(Training, ComesAsNearAsTheFlatOne) {
  const std::vector<Job> jobs = Jobs();
  const double flat = Distance(jobs[0]);
  EXPECT_LT(flat, 0.1);  // from 1.3 or so
  for (const Job& job : {jobs[1], jobs[3], jobs[4]}) {
    const double distance = Distance(job);
    EXPECT_LT(distance, 1.25 * flat) << job.name << ", flat " << flat;
  }
}

}  // namespace
}  // namespace bitrail
