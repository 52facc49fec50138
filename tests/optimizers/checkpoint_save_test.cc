// Save and load of intact checkpoints: ranks are threads.
#include "optimizers/checkpoint/save.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "optimizers/checkpoint/load.h"
#include "tests/optimizers/checkpoint_support.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using namespace checkpoint;
using test::LoadedStep;
using test::NamesIn;
using test::SmallState;
using test::TemporaryDirectory;
using test::World;

class SaveAndLoad : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SaveAndLoad, testing::Values(1, 2, 3, 4));

TEST_P(SaveAndLoad, EveryRankGetsItsStateBack) {
  const TemporaryDirectory place;
  const std::string directory = place / "new/deeper/checkpoint";
  World(GetParam()).run([&](int rank, bitrail_comm_t comm) {
    const SmallState state(7, rank);
    const Status status = Save(comm, directory, state.content);
    ASSERT_TRUE(status.ok()) << status.text();
    std::string why;
    EXPECT_EQ(LoadedStep(comm, directory, &why), 7) << why;
  });
  std::vector<std::string> expected = {"checkpoint.json"};
  for (int rank = 0; rank < GetParam(); rank++) {
    expected.push_back(ShardName(rank, GetParam(), 1));
  }
  EXPECT_EQ(NamesIn(directory), expected);
}

// A save over an older one, of fewer ranks, leaves only the newer one's files.
TEST(Save, ReplacesTheOlderOne) {
  const TemporaryDirectory place;
  const std::string directory = place / "checkpoint";
  World(4).run([&](int rank, bitrail_comm_t comm) {
    EXPECT_TRUE(Save(comm, directory, SmallState(1, rank).content).ok());
  });
  World(2).run([&](int rank, bitrail_comm_t comm) {
    EXPECT_TRUE(Save(comm, directory, SmallState(2, rank).content).ok());
    std::string why;
    EXPECT_EQ(LoadedStep(comm, directory, &why), 2) << why;
  });
  EXPECT_EQ(NamesIn(directory),
            (std::vector<std::string>{"checkpoint.json", "rank-00000-of-00002.2.safetensors",
                                      "rank-00001-of-00002.2.safetensors"}));
}

// More than one piece, read at odd places; another number of ranks reads than wrote.
TEST(Load, ReadsRangesAcrossPieces) {
  const TemporaryDirectory place;
  const std::string directory = place / "checkpoint";
  constexpr size_t kElements = 3 * kPiece / sizeof(float) + 17;
  const auto value = [](size_t i, int rank) {
    return static_cast<float>(i % 100003) + 0.25f * static_cast<float>(rank);
  };
  World(2).run([&](int rank, bitrail_comm_t comm) {
    std::vector<float> all(kElements), own(kElements);
    for (size_t i = 0; i < kElements; i++) all[i] = value(i, 0), own[i] = value(i, rank);
    Content content;
    content.optimizer = "adam";
    content.tensors = {{"v", Element::float32, Spread::replicated, {kElements}, all.data()},
                       {"e", Element::float32, Spread::per_rank, {kElements}, own.data()}};
    ASSERT_TRUE(Save(comm, directory, content).ok());
  });
  World(3).run([&](int rank, bitrail_comm_t comm) {
    Checkpoint opened;
    ASSERT_TRUE(Open(comm, directory, &opened).ok());
    EXPECT_EQ(opened.manifest.world_size, 2);
    std::vector<float> all(kElements);
    ASSERT_TRUE(Read(opened, "v", Element::float32, kElements, all.data()).ok());
    for (size_t i = 0; i < kElements; i++) ASSERT_EQ(all[i], value(i, 0)) << i;
    const int from = rank % 2;
    EXPECT_EQ(CountOfRank(opened, "e", from), kElements);
    constexpr size_t kPieceValues = kPiece / sizeof(float);
    const size_t begins[] = {0, 1, kPieceValues - 3, kPieceValues, 2 * kPieceValues + 5};
    for (const size_t begin : begins) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, kPieceValues, kPieceValues + 9}) {
        std::vector<float> part(count + 1, -1);
        ASSERT_TRUE(
            ReadOfRank(opened, "e", from, Element::float32, begin, count, part.data()).ok());
        for (size_t i = 0; i < count; i++) ASSERT_EQ(part[i], value(begin + i, from));
        ASSERT_EQ(part[count], -1);
      }
    }
  });
}

TEST(Load, RefusesWhatIsNotThere) {
  const TemporaryDirectory place;
  const std::string directory = place / "checkpoint";
  const SmallState state(3, 0);
  ASSERT_TRUE(Save(nullptr, directory, state.content).ok());
  Checkpoint opened;
  ASSERT_TRUE(Open(nullptr, directory, &opened).ok());
  std::vector<float> out(100);
  const Status wrong[] = {
      Read(opened, "exp_avgs", Element::float32, 37, out.data()),
      Read(opened, "exp_avg", Element::float32, 36, out.data()),
      Read(opened, "exp_avg", Element::int64, 37, out.data()),
      Read(opened, "worker_error", Element::float32, 40, out.data()),
      ReadOfRank(opened, "worker_error", 0, Element::float32, 1, 40, out.data()),
      ReadOfRank(opened, "worker_error", 1, Element::float32, 0, 40, out.data()),
      ReadOfRank(opened, "exp_avg", 0, Element::float32, 0, 37, out.data())};
  for (const Status& status : wrong) EXPECT_EQ(status.code(), BITRAIL_ERR_MISMATCH);
  EXPECT_EQ(Find(opened, "nothing"), nullptr);
  double scale = 1;
  int64_t number = 2;
  EXPECT_TRUE(Get(opened.manifest.scalars, "loss_scale", &scale));
  EXPECT_EQ(scale, 65536.5);
  EXPECT_FALSE(Get(opened.manifest.scalars, "loss_scale", &number));
  EXPECT_FALSE(Get(opened.manifest.scalars, "nothing", &number));
  EXPECT_EQ(number, 2);
}

TEST(Load, AnotherModelIsNamed) {
  const TemporaryDirectory place;
  const SmallState state(3, 0);
  ASSERT_TRUE(Save(nullptr, place / "c", state.content).ok());
  Checkpoint opened;
  ASSERT_TRUE(Open(nullptr, place / "c", &opened).ok());
  EXPECT_TRUE(CheckModel(opened, "onebit-adam", {{"weight", 32}, {"bias", 5}}).ok());
  const struct {
    std::vector<ModelTensor> model;
    const char* words;
  } wrongs[] = {
      {{{"weight", 32}, {"bias", 6}}, "tensor 1 is bias of 5 elements there, here bias of 6"},
      {{{"bias", 5}, {"weight", 32}}, "tensor 0 is weight of 32"},
      {{{"weight", 32}}, "tensor 1 is bias of 5 elements there, here no tensor"},
      {{{"weight", 32}, {"bias", 5}, {"more", 1}}, "tensor 2 is no tensor there"}};
  for (const auto& wrong : wrongs) {
    const Status status = CheckModel(opened, "onebit-adam", wrong.model);
    EXPECT_EQ(status.code(), BITRAIL_ERR_MISMATCH);
    EXPECT_NE(status.text().find(wrong.words), std::string::npos) << status.text();
  }
  EXPECT_EQ(CheckModel(opened, "adam", {}).code(), BITRAIL_ERR_MISMATCH);
}

TEST(Save, ScalarsComeBackExactly) {
  const TemporaryDirectory place;
  Content content;
  content.optimizer = "adam";
  content.step = INT64_MIN;
  content.scalars = {{"a", 0.1},       {"b", -0.0},      {"c", 5e-324},       {"d", 1e300},
                     {"e", INT64_MAX}, {"f", INT64_MIN}, {"g", "\"\n\u00e9"}, {"h", 3.0}};
  ASSERT_TRUE(Save(nullptr, place / "c", content).ok());
  Checkpoint opened;
  ASSERT_TRUE(Open(nullptr, place / "c", &opened).ok());
  EXPECT_EQ(opened.manifest.scalars, content.scalars);
  double b = 1;
  EXPECT_TRUE(Get(opened.manifest.scalars, "b", &b) && std::signbit(b));
  EXPECT_EQ(opened.manifest.step, INT64_MIN);
}

TEST(Save, WrongContentIsNamed) {
  const TemporaryDirectory place;
  const struct {
    const char* word;
    std::function<void(Content&)> spoil;
  } wrongs[] = {{"no name", [](Content& c) { c.optimizer.clear(); }},
                {"loss_scale", [](Content& c) { c.scalars["loss_scale"] = INFINITY; }},
                {"UTF-8", [](Content& c) { c.scalars["text"] = "\xff"; }},
                {"__metadata__", [](Content& c) { c.tensors[1].name = "__metadata__"; }},
                {"two tensors params", [](Content& c) { c.tensors[1].name = "params"; }},
                {"exp_avg is NULL", [](Content& c) { c.tensors[1].data = nullptr; }},
                {"too many",
                 [](Content& c) {
                   c.tensors[1].shape = {1u << 31, 1u << 31};
                 }},
                {"element type", [](Content& c) { c.tensors[1].type = static_cast<Element>(99); }}};
  for (const auto& wrong : wrongs) {
    SmallState state(1, 0);
    wrong.spoil(state.content);
    const Status status = Save(nullptr, place / "c", state.content);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT) << wrong.word;
    EXPECT_NE(status.text().find(wrong.word), std::string::npos) << status.text();
  }
  EXPECT_FALSE(std::filesystem::exists(place / "c"));
}

// Ranks that do not agree, or one that cannot: the same error everywhere, nothing changed.
TEST(Save, DisagreementIsToldToAllRanks) {
  const TemporaryDirectory place;
  const std::string directory = place / "checkpoint";
  World(3).run([&](int rank, bitrail_comm_t comm) {
    ASSERT_TRUE(Save(comm, directory, SmallState(1, rank).content).ok());
    Status status = Save(comm, directory, SmallState(rank == 2 ? 3 : 2, rank).content);
    EXPECT_EQ(status.code(), BITRAIL_ERR_MISMATCH);
    EXPECT_NE(status.text().find("rank 2"), std::string::npos) << status.text();
    SmallState state(2, rank);
    if (rank == 1) state.content.tensors[1].data = nullptr;
    status = Save(comm, directory, state.content);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_NE(status.text().find("rank 1: "), std::string::npos) << status.text();
    std::string why;
    EXPECT_EQ(LoadedStep(comm, directory, &why), 1) << why;
  });
  EXPECT_EQ(NamesIn(directory).size(), 4u);
}

TEST(Content, SlicesCoverEachElementOnce) {
  for (const uint64_t count : {0, 1, 3, 4, 37, 1000}) {
    for (int world = 1; world <= 9; world++) {
      uint64_t next = 0;
      for (int rank = 0; rank < world; rank++) {
        const Slice slice = SliceOf(count, rank, world);
        EXPECT_EQ(slice.begin, next);
        EXPECT_LE(slice.end - slice.begin, count / static_cast<uint64_t>(world) + 1);
        next = slice.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace bitrail
