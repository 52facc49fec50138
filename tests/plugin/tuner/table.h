// NCCL's side of a tuner table of any version, called as NCCL calls it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/abi/tuner_types.h"

namespace bitrail::test {

constexpr int kOldestTuner = 2, kNewestTuner = 6;

using Costs = std::array<float, size_t{nccl::kAlgorithms} * nccl::kProtocols>;
inline float& cost_at(Costs* costs, int algorithm, int protocol) {
  return (
      *costs)[static_cast<size_t>(algorithm) * nccl::kProtocols + static_cast<size_t>(protocol)];
}

struct Ask {
  int function = nccl::kAllReduce;
  size_t bytes = 0;
  int pipe_ops = 1;
  int registered = 0;
};

class TunerTable {
 public:
  TunerTable() = default;
  virtual ~TunerTable() = default;
  TunerTable(const TunerTable&) = delete;
  TunerTable& operator=(const TunerTable&) = delete;

  virtual int version() const = 0;
  virtual const char* name() const = 0;
  // `context` may be null.
  virtual nccl::Result init(size_t ranks, size_t nodes, void** context) = 0;
  // Version 2 is asked as NCCL's newer releases do: what it chooses becomes 0 where it is
  // available. `costs` and `channels` may be null.
  virtual nccl::Result get(void* context, const Ask& ask, Costs* costs, int* channels) = 0;
  virtual nccl::Result finish(void* context) = 0;

  bool has_costs() const { return version() > 2; }
};

// Null where the file has no such version. What tables log is kept, see take_log().
std::unique_ptr<TunerTable> tuner_table(const char* file, int version);
// The table itself, for calls that TunerTable does not make.
const void* tuner_symbol(const char* file, int version);
// The plugin's warnings and information since the last call.
std::vector<std::string> take_log();

}  // namespace bitrail::test
