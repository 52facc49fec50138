// Jobs whose ranks are spread over nodes, and what the hierarchical 1-bit allreduce must give them,
// in plain loops.
#pragma once

#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "runtime/api/error_state.h"
#include "tests/support/world.h"

namespace bitrail::test {

using topology::Placement;

inline std::vector<float> Noise(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// Runs fn(rank, comm) on ranks placed so, with that algorithm for the 1-bit allreduce.
inline void RunOnNodes(const Placement& placement, const std::string& algorithm,
                       const std::function<void(int, bitrail_comm_t)>& fn, int64_t piece = 0) {
  config::Settings settings;
  settings.algo = "onebit_allreduce:" + algorithm;
  settings.piece = piece;
  World(placement.world_size(), settings).run([&](int rank, bitrail_comm_t comm) {
    comm->placement = placement;
    fn(rank, comm);
  });
}

struct OnebitLayout {
  std::vector<size_t> counts;
  bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT;
  bitrail_norm_t norm = BITRAIL_NORM_L2;
  size_t block = 0;
  bitrail_padding_t padding = BITRAIL_PADDING_DEEPSPEED;

  size_t total() const { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }
};

class ErrorState {
 public:
  ErrorState(bitrail_comm_t comm, const OnebitLayout& layout) {
    const bitrail_onebit_layout_t c = {sizeof(c),     layout.counts.size(), layout.counts.data(),
                                       layout.scale,  layout.norm,          layout.block,
                                       layout.padding};
    if (bitrail_error_state_create(&state_, comm, &c) != BITRAIL_OK) std::abort();
  }
  ~ErrorState() { EXPECT_EQ(bitrail_error_state_destroy(state_), BITRAIL_OK); }
  ErrorState(const ErrorState&) = delete;
  ErrorState& operator=(const ErrorState&) = delete;
  operator bitrail_error_state_t() const { return state_; }
  bitrail_error_state* operator->() const { return state_; }
  std::vector<char> saved() const {
    std::vector<char> data(bitrail_error_state_bytes(state_));
    EXPECT_EQ(bitrail_error_state_save(state_, data.data(), data.size()), BITRAIL_OK);
    return data;
  }

 private:
  bitrail_error_state_t state_ = nullptr;
};

inline bitrail_status_t Allreduce(bitrail_error_state_t state, const void* send, void* recv,
                                  bitrail_type_t type = BITRAIL_FLOAT32) {
  const bitrail_onebit_call_t call = {sizeof call, send, recv, type, nullptr, nullptr, nullptr};
  return bitrail_onebit_allreduce(state, &call, nullptr);
}

// The job's numbers: nodes' means in float32, then the flat compressed allreduce of the nodes on
// each rail. Knows of the layout only what docs/algorithms.md says.
class PlainNodes {
 public:
  PlainNodes(Placement placement, int rails, const OnebitLayout& layout)
      : placement_(std::move(placement)),
        layout_(layout),
        nodes_(static_cast<size_t>(placement_.nodes())),
        chunks_(static_cast<size_t>(rails) * nodes_) {
    const bool tight = layout.padding == BITRAIL_PADDING_TIGHT;
    const size_t quantum =
        std::max(chunks_ * (tight ? 8 : std::lcm(chunks_, size_t{8})), size_t{1});
    for (const size_t count : layout.counts) {
      part_.push_back((count + quantum - 1) / quantum * quantum / chunks_);
      start_.push_back(chunk_);
      chunk_ += part_.back();
    }
    if (layout.scale == BITRAIL_SCALE_BLOCK)
      chunk_ = (chunk_ + layout.block - 1) / layout.block * layout.block;
    error_.assign(nodes_, std::vector<float>(chunk_ * chunks_));
    server_.assign(chunk_ * chunks_, 0.0f);
    element_.assign(chunk_ * chunks_, SIZE_MAX);
    size_t offset = 0;
    for (size_t t = 0; t < layout.counts.size(); t++) {
      for (size_t i = 0; i < layout.counts[t]; i++)
        element_[i / part_[t] * chunk_ + start_[t] + i % part_[t]] = offset + i;
      offset += layout.counts[t];
    }
  }

  // inputs[rank]: the result of one call.
  std::vector<float> call(const std::vector<std::vector<float>>& inputs) {
    const size_t all = chunk_ * chunks_;
    std::vector<float> average(all), out(layout_.total());
    std::vector<float> coded(all);
    const float factor =
        static_cast<float>(static_cast<double>(nodes_) / static_cast<double>(inputs.size()));
    for (size_t node = 0; node < nodes_; node++) {
      std::vector<float>& b = error_[node];
      for (size_t i = 0; i < all; i++)
        if (element_[i] != SIZE_MAX) {
          float sum = 0;
          for (const int rank : placement_.ranks_of(static_cast<int>(node)))
            sum += inputs[static_cast<size_t>(rank)][element_[i]];
          b[i] += sum * factor;
        }
      for (size_t first = 0; first < chunks_; first += nodes_)
        code(&b, first, first + nodes_, &coded);
      for (size_t i = 0; i < all; i++) average[i] += coded[i] * (1.0f / static_cast<float>(nodes_));
    }
    for (size_t i = 0; i < all; i++) server_[i] += average[i];
    for (size_t chunk = 0; chunk < chunks_; chunk++) code(&server_, chunk, chunk + 1, &coded);
    for (size_t i = 0; i < all; i++)
      if (element_[i] != SIZE_MAX) out[element_[i]] = coded[i];
    return out;
  }

 private:
  bool counts(size_t i) const {
    return layout_.padding != BITRAIL_PADDING_TIGHT || element_[i] != SIZE_MAX;
  }
  // Of the elements at `where`: their scale and signs, and what they leave of b.
  void code_all(const std::vector<size_t>& where, std::vector<float>* b, bool padding,
                std::vector<float>* out) const {
    double sum = 0;
    size_t length = 0;
    for (const size_t i : where) {
      if (!padding && !counts(i)) continue;
      const auto value = static_cast<double>((*b)[i]);
      sum += layout_.norm == BITRAIL_NORM_L1 ? std::abs(value) : value * value;
      length++;
    }
    double scale = 0;
    if (length != 0) {
      scale = layout_.norm == BITRAIL_NORM_L1
                  ? sum / static_cast<double>(length)
                  : static_cast<double>(static_cast<float>(std::sqrt(sum))) /
                        std::sqrt(static_cast<double>(length));
    }
    const auto s = static_cast<float>(scale);
    for (const size_t i : where) {
      (*out)[i] = (*b)[i] >= 0 ? s : -s;
      (*b)[i] -= (*out)[i];
      if (!counts(i)) (*b)[i] = 0;
    }
  }
  void code(std::vector<float>* b, size_t first, size_t last, std::vector<float>* out) const {
    if (layout_.scale == BITRAIL_SCALE_BLOCK) {
      for (size_t at = first * chunk_; at < last * chunk_; at += layout_.block) {
        std::vector<size_t> where(layout_.block);
        std::iota(where.begin(), where.end(), at);
        code_all(where, b, /*padding=*/true, out);
      }
      return;
    }
    for (size_t t = 0; t < part_.size(); t++) {
      std::vector<size_t> where;
      for (size_t chunk = first; chunk < last; chunk++)
        for (size_t i = 0; i < part_[t]; i++) where.push_back(chunk * chunk_ + start_[t] + i);
      code_all(where, b, /*padding=*/false, out);
    }
  }

  Placement placement_;
  OnebitLayout layout_;
  size_t nodes_, chunks_, chunk_ = 0;
  std::vector<size_t> part_, start_;       // by segment: length in a chunk, begin in it
  std::vector<std::vector<float>> error_;  // by node, all chunks
  std::vector<float> server_;              // all chunks
  std::vector<size_t> element_;            // of the flat vector, by place; SIZE_MAX: padding
};

}  // namespace bitrail::test
