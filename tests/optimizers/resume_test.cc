// Saving and loading whole optimizers through the C API: exact resume bit for bit, DeepSpeed's
// rule, other numbers of ranks, replicas after every load (F1, F2, F3), and what does not fit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using test::Kind;
using test::SmallModel;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("bitrail-resume-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr bitrail_checkpoint_options_t kExact = {sizeof(bitrail_checkpoint_options_t),
                                                 BITRAIL_ERRORS_EXACT};

struct Outcome {
  std::vector<std::vector<float>> params;  // by rank
  std::vector<std::vector<float>> m;
};

// Steps first..last by `world` ranks; loads before them and saves behind them where a folder is
// given.
Outcome Train(const Kind& kind, int world, int first, int last, const std::string& load,
              const std::string& save, const bitrail_checkpoint_options_t* options,
              int64_t freeze_step = 6) {
  Outcome run;
  run.params.resize(static_cast<size_t>(world));
  run.m.resize(static_cast<size_t>(world));
  test::World(world).run([&](int rank, bitrail_comm_t comm) {
    SmallModel model;
    const bitrail_zero_one_t intervals = test::ShortIntervals();
    model.options.zero_one = &intervals;
    model.options.freeze_step = freeze_step;
    if (!load.empty()) std::fill(model.params.begin(), model.params.end(), -7.0f);
    bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
    if (!load.empty()) {
      ASSERT_EQ(bitrail_optimizer_load(optimizer, load.c_str(), options), BITRAIL_OK)
          << bitrail_last_error();
      EXPECT_EQ(bitrail_optimizer_step_count(optimizer), first - 1);
    }
    for (int step = first; step <= last; step++) {
      test::Step(optimizer, comm, step);
      if (!kind.onebit || !optimizer->method->replicas_equal()) continue;
      std::vector<float> of_rank0 = model.params;
      ASSERT_EQ(bitrail_broadcast(comm, of_rank0.data(), of_rank0.data(), of_rank0.size(),
                                  BITRAIL_FLOAT32, 0, nullptr),
                BITRAIL_OK);
      ASSERT_EQ(of_rank0, model.params) << "replicas part in step " << step;
    }
    if (!save.empty()) {
      ASSERT_EQ(bitrail_optimizer_save(optimizer, save.c_str(), nullptr), BITRAIL_OK)
          << bitrail_last_error();
    }
    run.params[static_cast<size_t>(rank)] = model.params;
    run.m[static_cast<size_t>(rank)] = optimizer->state.m;
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
  return run;
}

class Resume : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, Resume, ::testing::ValuesIn(test::AllKinds()),
                         [](const auto& one) { return std::string(one.param.name); });

// Breaks in warm-up, at the freeze, and (0/1 Adam: in the middle of an interval) in compression.
TEST_P(Resume, ExactGoesOnBitForBit) {
  for (const int world : {1, 2, 3}) {
    const Outcome whole = Train(GetParam(), world, 1, 30, "", "", nullptr);
    for (const int stop : {3, 6, 11, 18, 23}) {
      SCOPED_TRACE(testing::Message() << world << " ranks, stop after " << stop);
      const Folder folder(GetParam().name);
      Train(GetParam(), world, 1, stop, "", folder.path(), nullptr);
      const Outcome rest = Train(GetParam(), world, stop + 1, 30, folder.path(), "", &kExact);
      EXPECT_EQ(rest.params, whole.params);
      EXPECT_EQ(rest.m, whole.m);
    }
  }
}

// The gradients here are noise, so what errors held is worth much; that training on real ones comes
// within 1 % is the trainer's test.
TEST_P(Resume, ResetComesNear) {
  const Outcome whole = Train(GetParam(), 2, 1, 30, "", "", nullptr);
  for (const int stop : {4, 18}) {
    const Folder folder(GetParam().name);
    Train(GetParam(), 2, 1, stop, "", folder.path(), nullptr);
    const Outcome rest = Train(GetParam(), 2, stop + 1, 30, folder.path(), "", nullptr);
    double difference = 0, size = 0;
    for (size_t i = 0; i < SmallModel::kElements; i++) {
      difference += std::pow(rest.params[0][i] - whole.params[0][i], 2);
      size += std::pow(whole.params[0][i], 2);
    }
    EXPECT_LT(std::sqrt(difference / size), 0.5) << "stop after " << stop;
  }
}

// 4 -> 2 -> 3 -> 1 ranks; what replicas do is looked at in Train.
TEST_P(Resume, OtherNumbersOfRanksGoOn) {
  for (const bitrail_checkpoint_options_t* options :
       {static_cast<const bitrail_checkpoint_options_t*>(nullptr), &kExact}) {
    const Folder folder(GetParam().name);
    Train(GetParam(), 4, 1, 11, "", folder.path(), nullptr);
    Train(GetParam(), 2, 12, 18, folder.path(), folder.path(), options);
    Train(GetParam(), 3, 19, 23, folder.path(), folder.path(), options);
    const Outcome last = Train(GetParam(), 1, 24, 26, folder.path(), "", options);
    for (const float x : last.params[0]) ASSERT_TRUE(std::isfinite(x));
  }
}

// A later freeze_step: back to warm-up. An earlier one: compression at once.
class ResumeOneBit : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, ResumeOneBit, ::testing::ValuesIn(test::OneBitKinds()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(ResumeOneBit, TodaysFreezeStepDecides) {
  const Folder folder(GetParam().name);
  Train(GetParam(), 2, 1, 10, "", folder.path(), nullptr);
  for (const int64_t freeze_step : {8, 14}) {
    test::World(2).run([&](int, bitrail_comm_t comm) {
      SmallModel model;
      const bitrail_zero_one_t intervals = test::ShortIntervals();
      model.options.zero_one = &intervals;
      model.options.freeze_step = freeze_step;
      bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, model.options);
      ASSERT_EQ(bitrail_optimizer_load(optimizer, folder.path().c_str(), nullptr), BITRAIL_OK);
      EXPECT_EQ(bitrail_optimizer_frozen(optimizer), freeze_step == 8);
      for (int step = 11; step <= 20; step++) test::Step(optimizer, comm, step);
      EXPECT_EQ(bitrail_optimizer_frozen(optimizer), 1);
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

TEST(Load, RefusesWhatDoesNotFitAndChangesNothing) {
  const Folder folder("misfit");
  Train(test::kOneBitAdam, 2, 1, 10, "", folder.path(), nullptr);
  test::World(2).run([&](int, bitrail_comm_t comm) {
    struct Case {
      Kind kind;
      const char* word;
      void (*change)(SmallModel&);
      const bitrail_checkpoint_options_t* options;
    };
    const Case cases[] = {
        {test::kZeroOneAdam, "0/1 Adam", [](SmallModel&) {}, nullptr},
        {test::kOneBitAdam, "segment 1", [](SmallModel& m) { m.segments[1].count -= 1; }, nullptr},
        {test::kOneBitAdam, "padding",
         [](SmallModel& m) { m.options.padding = BITRAIL_PADDING_TIGHT; }, &kExact},
    };
    for (const Case& one : cases) {
      SmallModel model;
      one.change(model);
      const std::vector<float> before = model.params;
      bitrail_optimizer_t optimizer = test::Make(one.kind, comm, model.options);
      EXPECT_EQ(bitrail_optimizer_load(optimizer, folder.path().c_str(), one.options),
                BITRAIL_ERR_MISMATCH);
      const std::string text = bitrail_last_error();
      EXPECT_NE(text.find(one.word), std::string::npos) << text;
      EXPECT_EQ(model.params, before);
      EXPECT_EQ(bitrail_optimizer_step_count(optimizer), 0);
      EXPECT_EQ(bitrail_optimizer_load(optimizer, "/nowhere/at/all", nullptr), BITRAIL_ERR_SYSTEM);
      EXPECT_EQ(bitrail_optimizer_load(optimizer, nullptr, nullptr), BITRAIL_ERR_INVALID_ARGUMENT);
      const bitrail_checkpoint_options_t wrong = {1, BITRAIL_ERRORS_RESET};
      EXPECT_EQ(bitrail_optimizer_save(optimizer, folder.path().c_str(), &wrong),
                BITRAIL_ERR_INVALID_ARGUMENT);
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    }
  });
}

}  // namespace
}  // namespace bitrail
