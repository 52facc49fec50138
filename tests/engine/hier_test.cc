// Algorithms that look at the placement, and the others that are nobody's default, run by the
// engine: right values on every rank.
#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "runtime/planner/registry.h"
#include "runtime/topology/placement.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using algorithms::Algorithm;
using algorithms::Request;
using schedule::Collective;
using topology::Placement;

// Small integers: sums have one right answer whatever the order.
int value(int rank, size_t i) {
  return static_cast<int>((i * 7 + static_cast<size_t>(rank) * 3) % 11);
}

float sum(int world, size_t i) {
  int total = 0;
  for (int rank = 0; rank < world; rank++) total += value(rank, i);
  return static_cast<float>(total);
}

std::atomic<int> built{0};  // schedules of placed algorithms

// Registers `name` with a placement bound to it; returns the name to ask for.
std::string placed(Collective collective, const char* name, const Placement& placement) {
  static int count = 0;
  const Algorithm& algorithm = *planner::find(collective, name);
  const auto kept = std::make_shared<const Placement>(placement);
  Algorithm bound;
  bound.name = fmt::format("placed{}_{}", count++, name);
  bound.collective = collective;
  bound.applies = [&algorithm, kept](const Request& request) {
    Request with = request;
    with.placement = kept.get();
    return algorithm.applies(with);
  };
  bound.build = [&algorithm, kept](const Request& request) {
    Request with = request;
    with.placement = kept.get();
    built++;
    return algorithm.build(with);
  };
  EXPECT_TRUE(planner::register_algorithm(bound).ok());
  return bound.name;
}

// The algorithms of a job, the sizes of its pieces.
config::Settings settings(const std::map<Collective, std::string>& names, int64_t piece) {
  config::Settings settings;
  for (const auto& [collective, name] : names)
    settings.algo +=
        fmt::format("{}{}:{}", settings.algo.empty() ? "" : ",", collective_name(collective), name);
  settings.piece = piece;
  return settings;
}

void check_allreduce(bitrail_comm_t comm, int world, int rank) {
  for (size_t n : {1ul, 7ul, 1000ul, 60001ul})
    for (bool in_place : {false, true})
      for (bitrail_op_t op : {BITRAIL_SUM, BITRAIL_AVG}) {
        std::vector<float> in(n), out(n);
        for (size_t i = 0; i < n; i++) in[i] = static_cast<float>(value(rank, i));
        float* to = in_place ? in.data() : out.data();
        ASSERT_EQ(bitrail_allreduce(comm, in.data(), to, n, BITRAIL_FLOAT32, op, nullptr),
                  BITRAIL_OK)
            << bitrail_last_error();
        const float divisor = op == BITRAIL_AVG ? static_cast<float>(world) : 1;
        for (size_t i = 0; i < n; i++)
          ASSERT_NEAR(to[i], sum(world, i) / divisor, 1e-4)
              << "element " << i << " of " << n << ", rank " << rank;
      }
}

void check_parts(bitrail_comm_t comm, int world, int rank) {
  const auto w = static_cast<size_t>(world);
  const auto r = static_cast<size_t>(rank);
  for (size_t n : {1ul, 5ul, 9000ul})
    for (bool in_place : {false, true}) {
      std::vector<float> all(n * w), part(n);
      for (size_t i = 0; i < n * w; i++) all[i] = static_cast<float>(value(rank, i));
      float* out = in_place ? all.data() + r * n : part.data();
      ASSERT_EQ(
          bitrail_reduce_scatter(comm, all.data(), out, n, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
          BITRAIL_OK)
          << bitrail_last_error();
      for (size_t i = 0; i < n; i++) ASSERT_EQ(out[i], sum(world, r * n + i));
      std::vector<int32_t> mine(n), gathered(n * w);
      for (size_t i = 0; i < n; i++) mine[i] = gathered[r * n + i] = value(rank, i);
      const int32_t* in = in_place ? gathered.data() + r * n : mine.data();
      ASSERT_EQ(bitrail_allgather(comm, in, gathered.data(), n, BITRAIL_INT32, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      for (size_t p = 0; p < w; p++)
        for (size_t i = 0; i < n; i++)
          ASSERT_EQ(gathered[p * n + i], value(static_cast<int>(p), i));
    }
}

void check_others(bitrail_comm_t comm, int world, int rank) {
  const auto w = static_cast<size_t>(world);
  for (int root = 0; root < world; root++) {
    std::vector<int32_t> data(20000);
    for (size_t i = 0; i < data.size(); i++) data[i] = rank == root ? value(root, i) : -1;
    ASSERT_EQ(bitrail_broadcast(comm, data.data(), data.data(), data.size(), BITRAIL_INT32, root,
                                nullptr),
              BITRAIL_OK)
        << bitrail_last_error();
    for (size_t i = 0; i < data.size(); i++) ASSERT_EQ(data[i], value(root, i));
  }
  constexpr size_t kPart = 3000;
  std::vector<int32_t> in(kPart * w), out(kPart * w);
  for (size_t i = 0; i < in.size(); i++) in[i] = value(rank, i);
  ASSERT_EQ(bitrail_alltoall(comm, in.data(), out.data(), kPart, BITRAIL_INT32, nullptr),
            BITRAIL_OK)
      << bitrail_last_error();
  for (size_t p = 0; p < w; p++)
    for (size_t i = 0; i < kPart; i++)
      ASSERT_EQ(out[p * kPart + i],
                value(static_cast<int>(p), static_cast<size_t>(rank) * kPart + i));
  for (int i = 0; i < 10; i++) ASSERT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK);
}

void run_all(int world, const std::map<Collective, std::string>& names) {
  for (int64_t piece : {0, 2048}) {  // elements: one piece a chunk, and several
    test::World job(world, settings(names, piece));
    job.run([&](int rank, bitrail_comm_t comm) {
      check_allreduce(comm, world, rank);
      check_parts(comm, world, rank);
      check_others(comm, world, rank);
    });
  }
}

class Placements : public testing::TestWithParam<std::vector<int>> {};

TEST_P(Placements, HierarchicalCollectivesAreRight) {
  const Placement placement = topology::place_ranks(GetParam());
  const int world = placement.world_size();
  std::map<Collective, std::string> names;
  for (Collective collective : {Collective::allreduce, Collective::reduce_scatter,
                                Collective::allgather, Collective::barrier})
    names[collective] = placed(collective, "hier", placement);
  names[Collective::broadcast] = placed(Collective::broadcast, "hier_tree", placement);
  names[Collective::alltoall] = "pairwise";
  const int before = built;
  run_all(world, names);
  // On every rank, by both jobs, each of five collectives at least once.
  EXPECT_GE(built - before, world * 2 * 5);
}

TEST_P(Placements, LeaderAndTreeAreRight) {
  const Placement placement = topology::place_ranks(GetParam());
  const int world = placement.world_size();
  for (const char* name : {"leader", "tree"}) {
    test::World job(
        world,
        settings({{Collective::allreduce, placed(Collective::allreduce, name, placement)}}, 2048));
    const int before = built;
    job.run([&](int rank, bitrail_comm_t comm) { check_allreduce(comm, world, rank); });
    EXPECT_GE(built - before, world);
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, Placements,
                         testing::Values(std::vector<int>{0, 0, 1, 1},
                                         std::vector<int>{0, 1, 0, 1, 0, 1},
                                         std::vector<int>{0, 0, 0, 1, 2, 2},
                                         std::vector<int>{0, 1, 1, 1, 1, 1}));

class Flat : public testing::TestWithParam<int> {};

TEST_P(Flat, HalvingTreeAndBruckAreRight) {
  const int world = GetParam();
  for (const char* name : {"halving", "tree"})
    run_all(world, {{Collective::allreduce, name}, {Collective::allgather, "bruck"}});
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, Flat, testing::Values(2, 3, 4, 7));

}  // namespace
}  // namespace bitrail
