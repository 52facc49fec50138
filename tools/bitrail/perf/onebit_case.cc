// The 1-bit collectives: lossy, so what is shown is the error against the exact result.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tools/bitrail/perf/aligned.h"
#include "tools/bitrail/perf/case.h"
#include "tools/bitrail/perf/pattern.h"

namespace bitrail::tool {
namespace {

class OnebitCase final : public Case {
 public:
  OnebitCase(bitrail_comm_t comm, const PerfOptions& options, size_t wanted)
      : comm_(comm),
        gathers_(options.collective == "allgather"),
        scatters_(options.collective == "reduce_scatter"),
        type_(options.type),
        element_(bitrail_type_size(options.type)),
        rank_(bitrail_comm_rank(comm)) {
    lossy = reduces = true;
    count = std::max<size_t>(1, wanted / element_);
    bytes = count * element_;
    const int size = bitrail_comm_world_size(comm);
    bus_factor = (gathers_ || scatters_ ? 1.0 : 2.0) * (size - 1) / size;
  }
  ~OnebitCase() override { bitrail_error_state_destroy(state_); }
  OnebitCase(const OnebitCase&) = delete;
  OnebitCase& operator=(const OnebitCase&) = delete;

  bitrail_status_t create(const PerfOptions& options) {
    bitrail_onebit_layout_t layout = {};
    layout.struct_size = sizeof layout;
    layout.segments = 1;
    layout.counts = &count;
    layout.scale = options.scale;
    layout.block = options.block;
    bitrail_status_t status = bitrail_error_state_create(&state_, comm_, &layout);
    if (status != BITRAIL_OK) return status;
    if (gathers_ || scatters_) status = bitrail_onebit_chunk(state_, 0, rank_, &begin_, &end_);
    if (status != BITRAIL_OK) return status;
    send_.resize(gathers_ ? (end_ - begin_) * element_ : bytes);
    recv_.resize(scatters_ ? (end_ - begin_) * element_ : bytes);
    return BITRAIL_OK;
  }

  bool has_in_place() const override { return !gathers_ && !scatters_; }

  bitrail_status_t prepare(bool in_place) override {
    std::memset(recv_.data(), 0xa5, recv_.size());
    // An all-gather's parts are cut from one array that all ranks know.
    whole_.resize(bytes);
    fill_random(type_, gathers_ ? 0 : rank_, count, whole_.data());
    Bytes& input = in_place ? recv_ : send_;
    std::memcpy(input.data(), whole_.data() + (gathers_ ? begin_ * element_ : 0), input.size());
    return bitrail_error_state_reset(state_);
  }

  bitrail_status_t call(bool in_place) override {
    bitrail_onebit_call_t args = {};
    args.struct_size = sizeof args;
    args.send = in_place ? recv_.data() : send_.data();
    args.recv = recv_.data();
    args.type = type_;
    if (gathers_) return bitrail_onebit_allgather(state_, &args, nullptr);
    if (scatters_) return bitrail_onebit_reduce_scatter(state_, &args, nullptr);
    return bitrail_onebit_allreduce(state_, &args, nullptr);
  }

  bitrail_status_t check(bool /*in_place*/, double* figure) override {
    std::vector<float> exact(count), got(recv_.size() / element_);
    to_float(type_, whole_.data(), count, exact.data());
    if (!gathers_) {
      const bitrail_status_t status = bitrail_allreduce(comm_, exact.data(), exact.data(), count,
                                                        BITRAIL_FLOAT32, BITRAIL_AVG, nullptr);
      if (status != BITRAIL_OK) return status;
    }
    to_float(type_, recv_.data(), got.size(), got.data());
    const float* want = exact.data() + (scatters_ ? begin_ : 0);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < got.size(); i++) {
      const double d = static_cast<double>(got[i]) - want[i];
      difference += d * d;
      norm += static_cast<double>(want[i]) * want[i];
    }
    *figure = norm > 0 ? std::sqrt(difference / norm) : 0;
    return BITRAIL_OK;
  }

  uint64_t checksum() const override {
    return checksum_bytes(send_.data(), send_.size()) ^ checksum_bytes(recv_.data(), recv_.size());
  }

 private:
  bitrail_comm_t comm_;
  bool gathers_, scatters_;
  bitrail_type_t type_;
  size_t element_;
  int rank_;
  bitrail_error_state_t state_ = nullptr;
  size_t begin_ = 0, end_ = 0;  // this rank's chunk
  Bytes send_, recv_, whole_;
};

}  // namespace

bitrail_status_t make_onebit_case(bitrail_comm_t comm, const PerfOptions& options, size_t bytes,
                                  std::unique_ptr<Case>* result) {
  auto made = std::make_unique<OnebitCase>(comm, options, bytes);
  const bitrail_status_t status = made->create(options);
  *result = std::move(made);
  return status;
}

}  // namespace bitrail::tool
