#include "tests/plugin/tuner/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <fmt/core.h>
#include <unistd.h>

namespace bitrail::test {
namespace {

using namespace nccl;

constexpr int kNcclsChannels = 17;  // what *channels is before the call
constexpr size_t kRanks = 64, kNodes = 8;
constexpr float kNcclsCost = 50;

// One communicator; ends with it.
struct Communicator {
  Communicator(TunerTable* tuner, size_t ranks, size_t nodes) : table(tuner) {
    result = table->init(ranks, nodes, &context);
  }
  ~Communicator() { (void)table->finish(context); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  TunerTable* table;
  void* context = nullptr;
  Result result = kInternalError;
};

struct Answer {
  Result result = kInternalError;
  Costs costs{};
  int channels = kNcclsChannels;

  // The entry that NCCL would take; version 2 says by 0.
  int best() const {
    int found = -1;
    for (int i = 0; i < static_cast<int>(costs.size()); i++) {
      const float cost = costs[static_cast<size_t>(i)];
      if (cost >= 0 && (found < 0 || cost < costs[static_cast<size_t>(found)])) found = i;
    }
    return found;
  }
};

Answer ask(TunerTable* table, void* context, const Ask& what, const Costs& before) {
  Answer answer;
  answer.costs = before;
  answer.result = table->get(context, what, &answer.costs, &answer.channels);
  return answer;
}

int entry(int algorithm, int protocol) { return algorithm * kProtocols + protocol; }

std::string is_off(TunerTable* table) {
  const Variables variables(false, csv_file("allreduce,0,-1,ring,simple,3\n"));
  const Communicator comm(table, kRanks, kNodes);
  if (comm.result != kSuccess) return fmt::format("init gives {} when off", comm.result);
  const Costs before = available_costs(true, true);
  const Answer answer = ask(table, comm.context, {.bytes = 4096}, before);
  if (answer.result != kSuccess) return fmt::format("off: code {}", answer.result);
  if (answer.costs != before) return "off: costs changed";
  return answer.channels == kNcclsChannels ? "" : "off: channels changed";
}

std::string keeps_ignored(TunerTable* table) {
  const Variables variables(true, csv_file("allreduce,0,-1,nvls,simple,3\n"));
  const Communicator comm(table, kRanks, kNodes);
  Costs before = available_costs(false, false);
  cost_at(&before, kTree, kLl128) = kIgnored;
  for (const size_t bytes : {size_t{0}, size_t{1} << 20, size_t{1} << 40}) {
    const Answer answer = ask(table, comm.context, {.bytes = bytes}, before);
    if (answer.result != kSuccess) return fmt::format("code {}", answer.result);
    for (size_t i = 0; i < before.size(); i++) {
      if (before[i] == kIgnored && answer.costs[i] != kIgnored) {
        return fmt::format("{} bytes: entry {} was ignored and is {}", bytes, i, answer.costs[i]);
      }
    }
    if (answer.channels != kNcclsChannels) return "a row whose choice is not available did choose";
  }
  return {};
}

// Short ones by few hops and LL, long ones by ring and Simple.
std::string prefers_by_size(TunerTable* table) {
  const Variables variables(true, "");
  const Communicator comm(table, kRanks, kNodes);
  if (comm.result != kSuccess) return fmt::format("init gives {}", comm.result);
  Costs before = available_costs(false, false);
  for (int a = 0; a < kAlgorithms; a++) cost_at(&before, a, kLl128) = kIgnored;
  const Answer few = ask(table, comm.context, {.bytes = 1024}, before);
  const Answer many = ask(table, comm.context, {.bytes = size_t{1} << 30}, before);
  if (few.best() != entry(kTree, kLl)) return fmt::format("1 KiB by entry {}", few.best());
  if (many.best() != entry(kRing, kSimple)) return fmt::format("1 GiB by entry {}", many.best());
  if (few.channels != kNcclsChannels || many.channels != kNcclsChannels) return "channels changed";
  // Between the two, rings of LL never come back once Simple is better.
  bool simple = false;
  for (size_t bytes = 256; bytes <= size_t{1} << 32; bytes *= 2) {
    const bool now =
        ask(table, comm.context, {.bytes = bytes}, before).best() % kProtocols == kSimple;
    if (simple && !now) return fmt::format("LL is preferred again at {} bytes", bytes);
    simple = now;
  }
  return {};
}

std::string writes_times(TunerTable* table) {
  if (!table->has_costs()) return {};
  const Variables variables(true, "");
  const Communicator comm(table, kRanks, kNodes);
  const Costs before = available_costs(true, true);
  for (const int function : {kBroadcast, kReduce, kAllGather, kReduceScatter, kAllReduce}) {
    Answer last;
    for (size_t bytes = 1; bytes <= size_t{1} << 36; bytes *= 4) {
      const Answer now = ask(table, comm.context, {.function = function, .bytes = bytes}, before);
      if (now.costs[static_cast<size_t>(entry(kRing, kSimple))] == kNcclsCost) {
        return "the ring's time is NCCL's";
      }
      for (size_t i = 0; last.result == kSuccess && i < before.size(); i++) {
        if (now.costs[i] >= last.costs[i]) continue;
        return fmt::format("collective {}, entry {}: {} bytes take {} us, {} take {}", function, i,
                           bytes / 4, last.costs[i], bytes, now.costs[i]);
      }
      last = now;
    }
  }
  // All bytes once over the narrowest link: 1 GiB at 8 x 400 Gbit/s, and twice that for a ring.
  const Answer much = ask(table, comm.context, {.bytes = size_t{1} << 30}, before);
  const double ms = much.costs[static_cast<size_t>(entry(kRing, kSimple))] / 1000;
  if (ms < 5 || ms > 8) return fmt::format("1 GiB by ring takes {} ms", ms);
  return {};
}

std::string follows_rows(TunerTable* table) {
  const Variables variables(true,
                            csv_file("collective,min_bytes,max_bytes,algorithm,protocol,channels\n"
                                     "allreduce,0,4096,ring,simple,3,8,64\n"
                                     "allreduce,0,8192,tree,simple,5,-1,-1,-1,-1\n"
                                     "allreduce,8193,1M,tree,ll,-1,4\n"  // of other nodes
                                     "allgather,0,-1,*,ll,-1\n"
                                     "allreduce,1048577,-1,ring,*,9,*,*,2\n"));
  const Communicator comm(table, kRanks, kNodes);
  Costs before = available_costs(false, false);
  struct Case {
    Ask ask;
    int best, channels;  // -1: no row's
  };
  for (const Case& c :
       {Case{{.bytes = 4096}, entry(kRing, kSimple), 3},
        Case{{.bytes = 4097}, entry(kTree, kSimple), 5},
        Case{{.bytes = 100'000}, -1, kNcclsChannels},
        Case{{.function = kAllGather, .bytes = 1 << 20}, entry(kRing, kLl), kNcclsChannels},
        Case{{.bytes = size_t{1} << 30}, -1, kNcclsChannels},
        Case{{.bytes = size_t{1} << 36, .pipe_ops = 2}, entry(kRing, kSimple), 9}}) {
    for (int p = 0; p < kProtocols; p++) {
      cost_at(&before, kTree, p) = c.ask.function == kAllReduce ? kNcclsCost : kIgnored;
    }
    const Answer answer = ask(table, comm.context, c.ask, before);
    const bool chosen = answer.best() >= 0 && answer.costs[static_cast<size_t>(answer.best())] == 0;
    if (c.best >= 0 && (!chosen || answer.best() != c.best)) {
      return fmt::format("rows: {} bytes by entry {}", c.ask.bytes, answer.best());
    }
    if (c.best < 0 && table->has_costs() && chosen) return "a row that does not fit chose";
    if (answer.channels != c.channels) {
      return fmt::format("rows: {} bytes on {} channels", c.ask.bytes, answer.channels);
    }
  }
  return {};
}

// Communicators side by side: each its own answers.
std::string keeps_apart(TunerTable* table) {
  const Variables variables(true, "");
  const Communicator small(table, 2, 2), large(table, 4096, 512);
  const Costs before = available_costs(false, false);
  const Answer a = ask(table, small.context, {.bytes = 65'536}, before);
  const Answer b = ask(table, large.context, {.bytes = 65'536}, before);
  if (small.context == large.context) return "two communicators share a context";
  const auto ring = static_cast<size_t>(entry(kRing, kSimple));
  if (table->has_costs() && b.costs[ring] < 100 * a.costs[ring]) {
    return "4,096 ranks go round as fast as 2";
  }
  return {};
}

std::string refuses(TunerTable* table) {
  const Variables variables(true, "");
  if (table->init(kRanks, kNodes, nullptr) != kInvalidArgument) return "init into nothing";
  void* context = nullptr;
  for (const auto& [ranks, nodes] :
       {std::pair<size_t, size_t>{0, 0}, {1, 2}, {0, 1}, {SIZE_MAX, 1}}) {
    if (table->init(ranks, nodes, &context) != kInvalidArgument || context != nullptr) {
      return fmt::format("{} ranks on {} nodes", ranks, nodes);
    }
  }
  Costs costs = available_costs(false, false);
  int channels = kNcclsChannels, local = 0;
  for (void* unknown : {static_cast<void*>(nullptr), static_cast<void*>(&local)}) {
    if (table->get(unknown, {.bytes = 1}, &costs, &channels) != kInvalidArgument) {
      return "an unknown context";
    }
    if (table->finish(unknown) != kSuccess) return "the end of an unknown context";
  }
  const Communicator comm(table, kRanks, kNodes);
  if (table->get(comm.context, {.bytes = 1}, nullptr, &channels) != kInvalidArgument ||
      table->get(comm.context, {.bytes = 1}, &costs, nullptr) != kInvalidArgument) {
    return "null arguments";
  }
  // What is no collective of these is left alone.
  for (const int function : {-1, 5, 8, 1000}) {
    const Answer answer = ask(table, comm.context, {.function = function}, costs);
    if (answer.result != kSuccess || answer.costs != costs) {
      return fmt::format("collective {}", function);
    }
  }
  return channels == kNcclsChannels ? "" : "channels changed";
}

}  // namespace

std::string csv_file(const std::string& lines) {
  static int number = 0;
  std::string path = fmt::format("{}/tuner_{}_{}.csv", testing::TempDir(), getpid(), number++);
  std::ofstream(path) << lines;
  return path;
}

std::string topology_file() {
  static const std::string path = [] {
    std::string name = fmt::format("{}/tuner_{}_topology.txt", testing::TempDir(), getpid());
    std::ofstream(name) << "nodes=8 gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G pcie=5\n";
    return name;
  }();
  return path;
}

Variables::Variables(bool on, const std::string& csv) {
  setenv("BITRAIL_TUNER", on ? "1" : "0", 1);
  setenv("BITRAIL_TUNER_CSV", csv.c_str(), 1);
  setenv("BITRAIL_TOPO_FILE", topology_file().c_str(), 1);
}
Variables::~Variables() {
  for (const char* name : {"BITRAIL_TUNER", "BITRAIL_TUNER_CSV", "BITRAIL_TOPO_FILE"})
    unsetenv(name);
}

Costs available_costs(bool collnet, bool nvls) {
  Costs costs;
  costs.fill(kIgnored);
  for (const int a : {kTree, kRing}) {
    for (int p = 0; p < kProtocols; p++) cost_at(&costs, a, p) = kNcclsCost;
  }
  for (const int a : {kCollNetDirect, kCollNetChain}) {
    if (collnet) cost_at(&costs, a, kSimple) = kNcclsCost;
  }
  for (const int a : {kNvls, kNvlsTree}) {
    if (nvls) cost_at(&costs, a, kSimple) = kNcclsCost;
  }
  return costs;
}

std::string check_tuner(TunerTable* table) {
  for (const auto check :
       {is_off, keeps_ignored, prefers_by_size, writes_times, follows_rows, keeps_apart, refuses}) {
    std::string text = check(table);
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace bitrail::test
