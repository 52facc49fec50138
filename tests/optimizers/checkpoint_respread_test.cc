// Error state for another number of ranks.
#include "optimizers/checkpoint/respread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "optimizers/checkpoint/save.h"
#include "tests/optimizers/checkpoint_support.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using checkpoint::RespreadServer;
using checkpoint::RespreadWorker;
using engine::OnebitLayout;

using Floats = std::vector<float>;
using All = std::vector<Floats>;  // by rank

const std::vector<uint64_t> kCounts = {37, 0, 1000, 8, 70001, 1};

OnebitLayout Layout(int ranks, uint64_t block = 0, const std::vector<uint64_t>& counts = kCounts) {
  OnebitLayout layout;
  EXPECT_TRUE(engine::make_layout(ranks, counts, block, false, &layout).ok());
  return layout;
}

// Values in [-1, 1), also in the padding.
All Random(int ranks, uint64_t count, uint64_t seed) {
  All all(static_cast<size_t>(ranks), Floats(count));
  for (Floats& values : all) {
    for (float& value : values) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<float>(static_cast<int32_t>(seed >> 32)) * 0x1p-31f;
    }
  }
  return all;
}

// Where element i of segment t lies in the worker array: the layout's definition, spelt out.
uint64_t WorkerAt(const OnebitLayout& layout, size_t t, uint64_t i) {
  const engine::Segment& segment = layout.segments[t];
  return i / segment.chunk * layout.chunk + segment.chunk_offset + i % segment.chunk;
}

All Worker(const OnebitLayout& from, const OnebitLayout& to, const All& old,
           std::set<int>* asked = nullptr) {
  All made(static_cast<size_t>(to.world_size), Floats(to.padded(), NAN));
  for (int rank = 0; rank < to.world_size; rank++) {
    const auto source = [&](int r, uint64_t begin, uint64_t count, float* out) -> Status {
      if (asked != nullptr) asked->insert(rank * 1000 + r);
      EXPECT_LE(begin + count, from.padded());
      std::copy_n(old[static_cast<size_t>(r)].begin() + static_cast<std::ptrdiff_t>(begin), count,
                  out);
      return {};
    };
    EXPECT_TRUE(
        RespreadWorker(from, to, rank, source, made[static_cast<size_t>(rank)].data()).ok());
  }
  return made;
}

All Server(const OnebitLayout& from, const OnebitLayout& to, const All& old) {
  All made(static_cast<size_t>(to.world_size), Floats(to.chunk, NAN));
  for (int rank = 0; rank < to.world_size; rank++) {
    const auto source = [&](int r, uint64_t begin, uint64_t count, float* out) -> Status {
      EXPECT_LE(begin + count, from.chunk);
      std::copy_n(old[static_cast<size_t>(r)].begin() + static_cast<std::ptrdiff_t>(begin), count,
                  out);
      return {};
    };
    EXPECT_TRUE(
        RespreadServer(from, to, rank, source, made[static_cast<size_t>(rank)].data()).ok());
  }
  return made;
}

// By segment and element, in double.
std::vector<std::vector<double>> Means(const OnebitLayout& layout, const All& all) {
  std::vector<std::vector<double>> means;
  for (size_t t = 0; t < layout.tensors; t++) {
    auto& mean = means.emplace_back(layout.segments[t].count, 0.0);
    for (size_t i = 0; i < mean.size(); i++) {
      for (const Floats& rank : all) mean[i] += static_cast<double>(rank[WorkerAt(layout, t, i)]);
      mean[i] /= layout.world_size;
    }
  }
  return means;
}

// Everything that is no element of a tensor.
void ExpectPaddingZero(const OnebitLayout& layout, const All& all) {
  std::vector<bool> element(layout.padded(), false);
  for (size_t t = 0; t < layout.tensors; t++) {
    for (uint64_t i = 0; i < layout.segments[t].count; i++) element[WorkerAt(layout, t, i)] = true;
  }
  for (const Floats& rank : all) {
    for (size_t i = 0; i < rank.size(); i++) {
      ASSERT_TRUE(element[i] || rank[i] == 0.0f) << i;
    }
  }
}

TEST(RespreadWorker, KeepsTheMeanFrom4To2To3To4) {
  for (const uint64_t block : {0u, 1024u}) {
    OnebitLayout layout = Layout(4, block);
    All errors = Random(4, layout.padded(), 1);
    const auto before = Means(layout, errors);
    for (const int ranks : {2, 3, 4}) {
      const OnebitLayout next = Layout(ranks, block);
      errors = Worker(layout, next, errors);
      layout = next;
      ExpectPaddingZero(layout, errors);
      const auto after = Means(layout, errors);
      for (size_t t = 0; t < before.size(); t++) {
        for (size_t i = 0; i < before[t].size(); i++) {
          // Each change rounds each rank's value once: half of 2^-24 of at most 1.
          ASSERT_NEAR(after[t][i], before[t][i], 3 * 0x1p-25) << ranks << " " << t << " " << i;
        }
      }
      for (const Floats& rank : errors) {  // averages: no error grows
        for (const float e : rank) ASSERT_LE(std::fabs(e), 1.0f);
      }
    }
  }
}

// The rule itself, for all pairs of small sizes, with weights summed the slow way.
TEST(RespreadWorker, FollowsTheOverlapOfIntervals) {
  const std::vector<uint64_t> counts = {5};
  for (int from = 1; from <= 9; from++) {
    for (int to = 1; to <= 9; to++) {
      const OnebitLayout old_layout = Layout(from, 0, counts), layout = Layout(to, 0, counts);
      const All old = Random(from, old_layout.padded(), 2);
      std::set<int> asked;
      const All made = Worker(old_layout, layout, old, &asked);
      for (int q = 0; q < to; q++) {
        double expected = 0;
        for (int unit = q * from; unit < (q + 1) * from; unit++) {  // of 1 / (from * to)
          expected += static_cast<double>(old[static_cast<size_t>(unit / to)][0]) / from;
        }
        EXPECT_NEAR(made[static_cast<size_t>(q)][0], expected, 1e-7) << from << " to " << to;
        const auto reads =
            std::distance(asked.lower_bound(q * 1000), asked.lower_bound(q * 1000 + 1000));
        EXPECT_LE(reads, (from + to - 1) / to + 1);
      }
    }
  }
}

TEST(RespreadWorker, SameSizeKeepsTheBits) {
  const OnebitLayout layout = Layout(3);
  const All old = Random(3, layout.padded(), 3);
  const All made = Worker(layout, layout, old);
  for (size_t t = 0; t < layout.tensors; t++) {
    for (uint64_t i = 0; i < layout.segments[t].count; i++) {
      const uint64_t at = WorkerAt(layout, t, i);
      for (size_t r = 0; r < 3; r++) ASSERT_EQ(made[r][at], old[r][at]);
    }
  }
}

// Longer than what is read at a time.
TEST(RespreadWorker, ReadsLongArraysInParts) {
  const std::vector<uint64_t> counts = {700'001, 3};
  const OnebitLayout from = Layout(2, 0, counts), to = Layout(1, 0, counts);
  const All old = Random(2, from.padded(), 4);
  const auto before = Means(from, old), after = Means(to, Worker(from, to, old));
  for (size_t t = 0; t < 2; t++) {
    for (size_t i = 0; i < before[t].size(); i++) {
      ASSERT_NEAR(after[t][i], before[t][i], 0x1p-25) << i;
    }
  }
}

TEST(RespreadServer, KeepsEveryElement) {
  for (const uint64_t block : {0u, 1024u}) {
    const OnebitLayout first = Layout(4, block);
    const All old = Random(4, first.chunk, 5);
    OnebitLayout layout = first;
    All errors = old;
    for (const int ranks : {2, 3, 4, 7, 1}) {
      const OnebitLayout next = Layout(ranks, block);
      errors = Server(layout, next, errors);
      layout = next;
      double sum = 0;
      for (size_t t = 0; t < layout.tensors; t++) {
        const engine::Segment &a = first.segments[t], &b = layout.segments[t];
        for (uint64_t i = 0; i < b.count; i++) {
          const float was = old[i / a.chunk][a.chunk_offset + i % a.chunk];
          ASSERT_EQ(errors[i / b.chunk][b.chunk_offset + i % b.chunk], was) << t << " " << i;
          sum += std::fabs(was);
        }
      }
      for (const Floats& rank : errors) {
        for (const float e : rank) sum -= std::fabs(e);
      }
      EXPECT_NEAR(sum, 0, 1e-6);  // nothing but the elements
    }
  }
}

// Through files, every rank reading what it needs: 4 ranks save, 3 load.
TEST(Respread, ReadsShardsOfOtherRanks) {
  const test::TemporaryDirectory place;
  const std::string directory = place / "c";
  const std::vector<uint64_t> counts = {700'001, 8};
  const OnebitLayout from = Layout(4, 0, counts), to = Layout(3, 0, counts);
  const All worker = Random(4, from.padded(), 6), server = Random(4, from.chunk, 7);
  test::World(4).run([&](int rank, bitrail_comm_t comm) {
    const Floats &w = worker[static_cast<size_t>(rank)], &s = server[static_cast<size_t>(rank)];
    checkpoint::Content content;
    content.optimizer = "onebit-adam";
    using checkpoint::Element;
    using checkpoint::Spread;
    content.tensors = {{"worker", Element::float32, Spread::per_rank, {w.size()}, w.data()},
                       {"server", Element::float32, Spread::per_rank, {s.size()}, s.data()}};
    ASSERT_TRUE(checkpoint::Save(comm, directory, content).ok());
  });
  const All expected_worker = Worker(from, to, worker), expected_server = Server(from, to, server);
  test::World(3).run([&](int rank, bitrail_comm_t comm) {
    checkpoint::Checkpoint opened;
    ASSERT_TRUE(checkpoint::Open(comm, directory, &opened).ok());
    Floats w(to.padded()), s(to.chunk);
    ASSERT_TRUE(RespreadWorker(from, to, rank, SourceOf(opened, "worker"), w.data()).ok());
    ASSERT_TRUE(RespreadServer(from, to, rank, SourceOf(opened, "server"), s.data()).ok());
    EXPECT_EQ(w, expected_worker[static_cast<size_t>(rank)]);
    EXPECT_EQ(s, expected_server[static_cast<size_t>(rank)]);
    EXPECT_EQ(RespreadWorker(from, to, rank, SourceOf(opened, "none"), w.data()).code(),
              BITRAIL_ERR_MISMATCH);
  });
}

TEST(Respread, RefusesOtherTensorsAndPassesFailuresOn) {
  float out[100000];
  const auto broken = [](int, uint64_t, uint64_t, float*) {
    return Status(BITRAIL_ERR_SYSTEM, "no disk");
  };
  const std::vector<uint64_t> counts = {8, 8}, other = {8, 9}, fewer = {8};
  const OnebitLayout from = Layout(2, 0, counts);
  for (const auto& wrong : {other, fewer}) {
    const OnebitLayout to = Layout(3, 0, wrong);
    EXPECT_EQ(RespreadWorker(from, to, 0, broken, out).code(), BITRAIL_ERR_MISMATCH);
    EXPECT_EQ(RespreadServer(from, to, 0, broken, out).code(), BITRAIL_ERR_MISMATCH);
  }
  const OnebitLayout to = Layout(3, 0, counts);
  EXPECT_EQ(RespreadWorker(from, to, 0, broken, out).text(), "no disk");
  EXPECT_EQ(RespreadServer(from, to, 0, broken, out).text(), "no disk");
}

}  // namespace
}  // namespace bitrail
