// The tuner through its tables, and by its parts: the cost model, links of a topology, rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>

#include "plugin/abi/tuner_v4.h"
#include "plugin/abi/tuner_v5.h"
#include "plugin/abi/tuner_v6.h"
#include "plugin/tuner/csv.h"
#include "plugin/tuner/links.h"
#include "runtime/topology/read.h"
#include "tests/plugin/tuner/check.h"

namespace bitrail::test {
namespace {

using namespace nccl;
namespace tuner = plugin::tuner;

class Tuner : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, Tuner, testing::Range(kOldestTuner, kNewestTuner + 1),
                         [](const auto& version) { return fmt::format("v{}", version.param); });

bool has(const std::string& line, const std::string& text) {
  return line.find(text) != std::string::npos;
}

bool logged(const std::vector<std::string>& log, const std::string& text) {
  return std::ranges::any_of(log, [&](const std::string& line) { return has(line, text); });
}

TEST_P(Tuner, DoesWhatItSays) {
  const std::unique_ptr<TunerTable> table = tuner_table(PLUGIN_FILE, GetParam());
  ASSERT_NE(table, nullptr);
  EXPECT_STREQ(table->name(), "BitRail");
  EXPECT_EQ(check_tuner(table.get()), "");
  take_log();
}

TEST_P(Tuner, SaysWhatItGoesBy) {
  const std::unique_ptr<TunerTable> table = tuner_table(PLUGIN_FILE, GetParam());
  ASSERT_NE(table, nullptr);
  take_log();
  {
    const Variables variables(true, csv_file("allreduce,0,1,ring,ll,1\nnonsense\n"));
    void* context = nullptr;
    ASSERT_EQ(table->init(16, 2, &context), kSuccess);
    EXPECT_EQ(table->finish(context), kSuccess);
    const std::vector<std::string> log = take_log();
    EXPECT_TRUE(logged(log, "tuner is on: 16 ranks on 2 nodes")) << testing::PrintToString(log);
    EXPECT_TRUE(logged(log, "1 rows")) << testing::PrintToString(log);
    EXPECT_TRUE(logged(log, ".csv:2: 1 fields")) << testing::PrintToString(log);
  }
  const Variables variables(true, "/no/such/rows.csv");
  setenv("BITRAIL_TOPO_FILE", "/no/such/topology.xml", 1);
  void* context = nullptr;
  ASSERT_EQ(table->init(2, 2, &context), kSuccess)
      << "a tuner that cannot start is no reason to stop";
  EXPECT_EQ(table->finish(context), kSuccess);
  std::vector<std::string> log = take_log();
  EXPECT_TRUE(logged(log, "/no/such/rows.csv")) << testing::PrintToString(log);
  EXPECT_TRUE(logged(log, "/no/such/topology.xml")) << testing::PrintToString(log);
  setenv("BITRAIL_TUNER", "perhaps", 1);
  ASSERT_EQ(table->init(2, 2, &context), kSuccess);
  Costs costs = available_costs(false, false);
  const Costs before = costs;
  int channels = 0;
  EXPECT_EQ(table->get(context, {.bytes = 1024}, &costs, &channels), kSuccess);
  EXPECT_EQ(costs, before);
  EXPECT_EQ(table->finish(context), kSuccess);
  log = take_log();
  EXPECT_TRUE(logged(log, "tuner is off: BITRAIL_TUNER='perhaps'")) << testing::PrintToString(log);
}

TEST_P(Tuner, ServesCommunicatorsFromThreads) {
  const std::unique_ptr<TunerTable> table = tuner_table(PLUGIN_FILE, GetParam());
  ASSERT_NE(table, nullptr);
  const Variables variables(true, csv_file("allreduce,0,100,ring,simple,2\n"));
  const Costs before = available_costs(false, false);
  const auto answer = [&](void* context, size_t bytes) {
    Costs costs = before;
    int channels = 0;
    EXPECT_EQ(table->get(context, {.bytes = bytes}, &costs, &channels), kSuccess);
    EXPECT_EQ(channels, bytes <= 100 ? 2 : 0);
    return costs;
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t <= 4; t++) {
    threads.emplace_back([&, t] {
      void *mine = nullptr, *other = nullptr;
      ASSERT_EQ(table->init(8 * t, t, &mine), kSuccess);
      const Costs first = answer(mine, 4096 * t);
      for (int round = 0; round < 200; round++) {
        ASSERT_EQ(table->init(1000, 10, &other), kSuccess);
        EXPECT_EQ(answer(mine, 4096 * t), first);
        EXPECT_EQ(answer(other, 50)[kRing * kProtocols + kSimple], 0);
        EXPECT_EQ(table->finish(other), kSuccess);
      }
      EXPECT_EQ(table->finish(mine), kSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  take_log();
}

// What version 2 cannot know to be available it leaves to NCCL, unless a user's row wants it.
TEST(TunerV2, LeavesToNcclWhatItCannotKnow) {
  const std::unique_ptr<TunerTable> table = tuner_table(PLUGIN_FILE, 2);
  ASSERT_NE(table, nullptr);
  const auto chosen = [&](bool nvls, size_t ranks, size_t nodes, size_t bytes) {
    void* context = nullptr;
    EXPECT_EQ(table->init(ranks, nodes, &context), kSuccess);
    Costs costs = available_costs(false, nvls);
    int channels = 0;
    EXPECT_EQ(table->get(context, {.bytes = bytes}, &costs, &channels), kSuccess);
    EXPECT_EQ(table->finish(context), kSuccess);
    const auto* zero = std::ranges::find(costs, 0.0F);
    return zero == costs.end() ? -1 : static_cast<int>(zero - costs.begin());
  };
  constexpr int kNone = -1;
  constexpr size_t kMuch = size_t{1} << 30;
  {
    const Variables variables(true, "");
    EXPECT_EQ(chosen(true, 8, 1, kMuch), kNone) << "NVLS is the best, if it is there";
    EXPECT_EQ(chosen(false, 8, 1, kMuch), kRing * kProtocols + kSimple);
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
      setenv(name, "Tree", 1);
      EXPECT_EQ(chosen(false, 8, 1, kMuch), kNone) << name << " is the user's choice";
      unsetenv(name);
    }
  }
  const Variables variables(
      true, csv_file("allreduce,0,-1,nvls,simple,-1\nallreduce,0,-1,ring,ll128,-1\n"));
  EXPECT_EQ(chosen(true, 8, 1, kMuch), kNvls * kProtocols + kSimple);
  EXPECT_EQ(chosen(false, 8, 1, kMuch), kRing * kProtocols + kLl128);
  take_log();
}

TEST(TunerV4, TakesTablesOfOtherShapes) {
  const auto* table = static_cast<const TunerV4*>(tuner_symbol(PLUGIN_FILE, 4));
  ASSERT_NE(table, nullptr);
  const Variables variables(
      true, csv_file("allreduce,0,-1,pat,simple,-1\nallreduce,5,6,ring,ll,-1,-1,-1,-1,1\n"));
  void* context = nullptr;
  ASSERT_EQ(table->init(16, 2, nullptr, &context), kSuccess) << "a null logger is fine";
  int channels = 0;
  // As many as an older or a younger NCCL has; what is behind the table stays.
  for (const auto& [algorithms, protocols] : {std::pair{2, 3}, {6, 3}, {9, 3}, {7, 4}, {1, 1}}) {
    std::vector<float> costs(static_cast<size_t>(algorithms * protocols + 1), 77);
    ASSERT_EQ(table->get_coll_info(context, kAllReduce, 1 << 20, 1,
                                   reinterpret_cast<float**>(costs.data()), algorithms, protocols,
                                   0, &channels),
              kSuccess);
    EXPECT_EQ(costs.back(), 77);
    EXPECT_NE(costs.front(), 77);
    if (algorithms == 9) {
      EXPECT_EQ(costs[size_t{7} * 3], 77) << "an algorithm that nobody here knows";
    }
  }
  std::vector<float> costs(21, NAN);
  for (const auto& [algorithms, protocols] :
       {std::pair{0, 3}, {-1, 3}, {7, 0}, {1 << 30, 1 << 30}}) {
    EXPECT_EQ(
        table->get_coll_info(context, kAllReduce, 1, 1, reinterpret_cast<float**>(costs.data()),
                             algorithms, protocols, 0, &channels),
        kInvalidArgument);
  }
  // NaN is not available; a row for registered buffers wants them to be.
  ASSERT_EQ(table->get_coll_info(context, kAllReduce, 1, 1, reinterpret_cast<float**>(costs.data()),
                                 7, 3, 0, &channels),
            kSuccess);
  EXPECT_TRUE(std::ranges::all_of(costs, [](float cost) { return std::isnan(cost); }));
  for (const int registered : {0, 1}) {
    std::vector<float> fresh(21, 1);
    ASSERT_EQ(
        table->get_coll_info(context, kAllReduce, 5, -7, reinterpret_cast<float**>(fresh.data()), 7,
                             3, registered, &channels),
        kSuccess);
    // PAT does no allreduce, but the table says it is there.
    EXPECT_EQ(fresh[kPat * kProtocols + kSimple], 0);
  }
  EXPECT_EQ(table->destroy(context), kSuccess);
  EXPECT_EQ(table->destroy(context), kSuccess) << "twice";
}

TEST(TunerV5, GoesByNcclsConstantsAndDomains) {
  const auto* table = static_cast<const TunerV5*>(tuner_symbol(PLUGIN_FILE, 5));
  const auto* newest = static_cast<const TunerV6*>(tuner_symbol(PLUGIN_FILE, 6));
  ASSERT_TRUE(table != nullptr && newest != nullptr);
  EXPECT_EQ(newest->get_chunk_size, nullptr);
  const Variables variables(true, "");
  const auto ring_us = [&](size_t bytes, NvlinkDomains* domains, TunerConstants* constants) {
    void* context = nullptr;
    EXPECT_EQ(table->init(&context, 1, 16, 2, nullptr, domains, constants), kSuccess);
    Costs costs = available_costs(false, false);
    int channels = 0;
    EXPECT_EQ(table->get_coll_info(context, kAllReduce, bytes, 1,
                                   reinterpret_cast<float**>(costs.data()), 7, 3, 0, &channels),
              kSuccess);
    EXPECT_EQ(table->finalize(context), kSuccess);
    return cost_at(&costs, kRing, kSimple);
  };
  const float usual = ring_us(8, nullptr, nullptr);
  TunerConstants constants{};
  constants.base_latencies[kRing][kSimple] = 1000;
  const TunerConstants before = constants;
  EXPECT_NEAR(ring_us(8, nullptr, &constants), 1000, 1) << "hops that take no time";
  EXPECT_TRUE(std::equal(&constants.base_latencies[0][0], &constants.base_latencies[0][0] + 21,
                         &before.base_latencies[0][0]))
      << "NCCL's model keeps its own";
  for (const double wrong : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    TunerConstants bad;
    std::fill_n(reinterpret_cast<double*>(&bad), sizeof bad / 8, wrong);
    EXPECT_EQ(ring_us(8, nullptr, &bad), usual);
  }
  NvlinkDomains one{1, 16, 16}, two{2, 8, 8};
  EXPECT_LT(ring_us(8, &one, nullptr), usual) << "NVLink hops are shorter";
  EXPECT_EQ(ring_us(8, &two, nullptr), usual);
}

tuner::System system_of(const std::string& description, int64_t ranks, int64_t nodes) {
  topology::Cluster cluster;
  const Status status = topology::read_text(description, "test", &cluster);
  EXPECT_TRUE(status.ok()) << status.text();
  return tuner::system_of(cluster, ranks, nodes);
}

TEST(TunerLinks, ComeFromTheTopology) {
  tuner::System s = system_of("nodes=4 gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G pcie=5", 32, 4);
  EXPECT_TRUE(s.nvlink);
  EXPECT_NEAR(s.inside_gbs, 18 * 20.6, 1);
  EXPECT_NEAR(s.between_gbs, 8 * 48, 16) << "ports, no wider than their slots";
  EXPECT_EQ(s.local, 8);
  EXPECT_EQ(s.sm, 90);
  s = system_of("nodes=4 gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G pcie=5", 4, 4);
  EXPECT_NEAR(s.between_gbs, 48, 2) << "one rank of a node uses one port";
  s = system_of("nodes=2 gpus=4 gpu=v100 nics=1 nic=40G", 8, 2);
  EXPECT_FALSE(s.nvlink);
  EXPECT_LE(s.inside_gbs, 24);
  EXPECT_NEAR(s.between_gbs, 5, 0.1);
  s = system_of("nodes=1 gpus=8 nics=8 nic=400G pcie=5\nnodes=1 gpus=8 nics=1 nic=10G", 16, 2);
  EXPECT_NEAR(s.between_gbs, 1.25, 0.01) << "the slowest node counts";
  s = system_of("nodes=2 gpus=1 gpu=b200 nvlink=18 mnnvl=1", 2, 2);
  EXPECT_TRUE(s.nvlink_between);
  EXPECT_NEAR(s.between_gbs, 18 * 40.1, 1);
  s = system_of("nodes=2 gpus=0 nics=0", 2, 2);
  EXPECT_GT(s.between_gbs, 0);
  s = tuner::system_of({}, 2, 1);
  EXPECT_GT(s.inside_gbs, 0) << "no machine at all";
}

TEST(TunerCost, ExistsForWhatNcclHas) {
  const tuner::System one = system_of("gpus=8 gpu=h100 nvlink=18", 8, 1);
  const tuner::System many = system_of("nodes=8 gpus=1 nics=1 nic=400G", 8, 8);
  const auto exists = [](const tuner::System& s, int function, int algorithm, int protocol) {
    return tuner::predict_us(s, function, algorithm, protocol, 1 << 20, 1) >= 0;
  };
  for (int function = 0; function < kFunctions; function++) {
    for (int p = 0; p < kProtocols; p++) {
      EXPECT_TRUE(exists(one, function, kRing, p) && exists(many, function, kRing, p));
      EXPECT_EQ(exists(one, function, kTree, p), function == kAllReduce);
      EXPECT_EQ(exists(one, function, kNvls, p), p == kSimple && function >= kAllGather);
      EXPECT_FALSE(exists(one, function, kCollNetChain, p));
      EXPECT_EQ(exists(many, function, kCollNetChain, p), p == kSimple && function == kAllReduce);
      EXPECT_EQ(exists(many, function, kPat, p),
                p == kSimple && (function == kAllGather || function == kReduceScatter));
      EXPECT_FALSE(exists(one, function, kPat, p));
    }
  }
  for (const int bad : {-1, 7, 1 << 30}) {
    EXPECT_FALSE(exists(one, kAllReduce, bad, kSimple));
    EXPECT_FALSE(exists(one, kAllReduce, kRing, bad));
    EXPECT_FALSE(exists(one, bad, kRing, kSimple));
  }
  // NVLS sends what a ring sends twice; PAT takes fewer hops.
  EXPECT_LT(tuner::predict_us(one, kAllReduce, kNvls, kSimple, 1 << 30, 1),
            tuner::predict_us(one, kAllReduce, kRing, kSimple, 1 << 30, 1));
  EXPECT_LT(tuner::predict_us(many, kAllGather, kPat, kSimple, 8, 1),
            tuner::predict_us(many, kAllGather, kRing, kSimple, 8, 1));
  EXPECT_TRUE(std::isfinite(tuner::predict_us(many, kAllReduce, kRing, kLl, UINT64_MAX, 1 << 30)));
}

TEST(TunerCsv, ReadsRows) {
  std::vector<tuner::Row> rows;
  std::vector<std::string> problems;
  tuner::read_csv(
      "# by hand\r\n\n CollType,minbytes,maxbytes,algorithm,protocol,channels\r\n"
      " AllReduce , 1K , -1 , NVLS_Tree , Simple , 16 , 2 , * ,, 1 \r\n*,0,5,*,*,2",
      "f", &rows, &problems);
  EXPECT_TRUE(problems.empty()) << testing::PrintToString(problems);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].line, 4);
  EXPECT_EQ(rows[0].function, kAllReduce);
  EXPECT_EQ(rows[0].min_bytes, 1024U);
  EXPECT_EQ(rows[0].max_bytes, UINT64_MAX);
  EXPECT_EQ(rows[0].algorithm, kNvlsTree);
  EXPECT_EQ(rows[0].protocol, kSimple);
  EXPECT_EQ(rows[0].channels, 16);
  EXPECT_EQ(rows[0].nodes, 2);
  EXPECT_EQ(rows[0].ranks, tuner::kAny);
  EXPECT_EQ(rows[0].pipe_ops, tuner::kAny);
  EXPECT_EQ(rows[0].registered, 1);
  EXPECT_EQ(rows[1].function, tuner::kAny);
}

TEST(TunerCsv, RefusesRowsAndGoesOn) {
  struct Case {
    const char *line, *reason;
  };
  for (const Case& c :
       {Case{"allreduce,0,1,ring,ll", "5 fields"},
        Case{"allreduce,0,1,ring,ll,1,1,1,1,1,1", "too many fields"},
        Case{"alltoall,0,1,ring,ll,1", "collective 'alltoall' is none of"},
        Case{"allreduce,0,1,rings,ll,1", "algorithm 'rings' is none of tree"},
        Case{"allreduce,0,1,ring,ll256,1", "protocol 'll256'"},
        Case{"allreduce,-5,1,ring,ll,1", "min_bytes '-5'"},
        Case{"allreduce,0,99999999999999999999,ring,ll,1", "max_bytes"},
        Case{"allreduce,9,8,ring,ll,1", "min_bytes 9 is above max_bytes 8"},
        Case{"allreduce,0,1,ring,ll,65", "channels '65' is not a number from 1 to 64"},
        Case{"allreduce,0,1,ring,ll,0", "channels '0'"},
        Case{"allreduce,0,1,ring,ll,1,0", "nNodes '0'"},
        Case{"allreduce,0,1,ring,ll,1,1,1,1,2", "regBuff '2'"},
        Case{"allreduce,0,1,*,*,-1", "asks for nothing"},
        Case{"\x1b[31m,0,1,ring,ll,1", "collective '?[31m'"}}) {
    std::vector<tuner::Row> rows;
    std::vector<std::string> problems;
    tuner::read_csv(fmt::format("reduce,0,1,ring,ll,1\n{}\nreduce,0,1,ring,simple,1\n", c.line),
                    "f", &rows, &problems);
    EXPECT_EQ(rows.size(), 2U) << c.line;
    ASSERT_EQ(problems.size(), 1U) << c.line;
    EXPECT_TRUE(problems[0].starts_with("f:2: ")) << problems[0];
    EXPECT_TRUE(has(problems[0], c.reason)) << problems[0];
  }
}

TEST(TunerCsv, IsBounded) {
  std::vector<tuner::Row> rows;
  std::vector<std::string> problems;
  std::string text;
  for (size_t i = 0; i < 2 * tuner::kMaxRows; i++) text += "reduce,0,1,ring,ll,1\n";
  tuner::read_csv(text, "f", &rows, &problems);
  EXPECT_EQ(rows.size(), tuner::kMaxRows);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(has(problems[0], "more than 4096 rows")) << problems[0];
  rows.clear();
  problems.clear();
  tuner::read_csv(std::string(1000, '\n') + std::string(2000, ',') + "\n" + std::string(99, 'x'),
                  "f", &rows, &problems);
  EXPECT_EQ(problems.size(), 2U);
  problems.clear();
  text.clear();
  for (int i = 0; i < 100; i++) text += "bad\n";
  tuner::read_csv(text, "f", &rows, &problems);
  EXPECT_EQ(problems.size(), tuner::kMaxProblems + 1);
  EXPECT_EQ(problems.back(), "f: 80 more rows cannot be used");
  for (const std::string& path :
       {std::string("/"), std::string("/dev/zero"), std::string("/no/such"),
        csv_file(std::string(tuner::kMaxCsvBytes + 1, '#'))}) {
    EXPECT_EQ(tuner::read_csv_file(path, &rows, &problems).code(), BITRAIL_ERR_CONFIG) << path;
  }
}

class TunerMutation : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Faults, TunerMutation, testing::Range(0, kTunerFaults),
                         [](const testing::TestParamInfo<int>& fault) {
                           return std::string(
                               tuner_fault_name(static_cast<TunerFault>(fault.param)));
                         });

TEST_P(TunerMutation, IsNoticed) {
  const auto fault = static_cast<TunerFault>(GetParam());
  const std::unique_ptr<TunerTable> good = tuner_table(PLUGIN_FILE, kNewestTuner);
  ASSERT_NE(good, nullptr);
  const std::string text = check_tuner(mutate(good.get(), fault).get());
  if (fault == TunerFault::none) {
    EXPECT_EQ(text, "");
  } else {
    EXPECT_NE(text, "");
    RecordProperty("noticed", text);
  }
  take_log();
}

}  // namespace
}  // namespace bitrail::test
