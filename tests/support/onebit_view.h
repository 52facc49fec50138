// What one rank put on the wire in a finished 1-bit all-reduce with segment scales, and its errors,
// by segment: for tests against recorded values.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/api/error_state.h"
#include "runtime/engine/run.h"

namespace bitrail::test {

struct OnebitSegmentView {
  float worker_scale = 0, server_scale = 0;
  std::vector<uint8_t> worker_bits;  // padded / 8 bytes, all chunks
  std::vector<uint8_t> server_bits;  // padded / W / 8 bytes, the rank's own chunk
};

class OnebitView {
 public:
  // Call from bitrail_error_state::observe, while the run's buffers are bound.
  OnebitView(const engine::Run& run, const bitrail_error_state& state)
      : run_(run), state_(state), rank_(static_cast<uint32_t>(state.comm->world.rank)) {}

  OnebitSegmentView segment(size_t index) const {
    const engine::Segment& segment = state_.layout.segments[index];
    OnebitSegmentView view;
    view.worker_scale = scale("scales", index);
    view.server_scale = scale("server_scales", index);
    for (uint32_t chunk = 0; chunk < world(); chunk++) {
      const uint8_t* bits =
          chunk == rank_ ? start("wire_in", rank_, chunk) : start("wire_out", 0, chunk);
      append(bits, segment, &view.worker_bits);
    }
    append(start("gather_out", 0, rank_), segment, &view.server_bits);
    return view;
  }

 private:
  uint32_t world() const { return static_cast<uint32_t>(state_.layout.world_size); }

  uint32_t find(const std::string& name) const {
    const auto& buffers = run_.program->schedule.buffers;
    for (uint32_t i = 0; i < buffers.size(); i++) {
      if (buffers[i].name == name) return i;
    }
    throw std::runtime_error("no buffer " + name);
  }
  const uint8_t* start(const std::string& name, uint32_t slot, uint32_t chunk) const {
    const uint32_t buffer = find(name);
    const schedule::Bounds bounds = schedule::byte_bounds(
        run_.program->schedule, {buffer, slot, chunk, world(), 0, 1}, run_.program->binding);
    return reinterpret_cast<const uint8_t*>(run_.base[buffer]) + bounds.begin;
  }
  float scale(const std::string& name, size_t index) const {
    const uint32_t buffer = find(name);
    const schedule::Bounds bounds = schedule::byte_bounds(
        run_.program->schedule, {buffer, rank_, 0, 1, 0, 1}, run_.program->binding);
    float value;
    std::memcpy(&value, run_.base[buffer] + bounds.begin + index * sizeof value, sizeof value);
    return value;
  }
  static void append(const uint8_t* chunk, const engine::Segment& segment,
                     std::vector<uint8_t>* bits) {
    const uint8_t* begin = chunk + segment.chunk_offset / 8;
    bits->insert(bits->end(), begin, begin + segment.chunk / 8);
  }

  const engine::Run& run_;
  const bitrail_error_state& state_;
  uint32_t rank_;
};

// The errors of one segment in its own order: worker (padded), server (padded / W).
inline std::vector<float> WorkerError(const bitrail_error_state& state, size_t index) {
  const engine::Segment& segment = state.layout.segments[index];
  std::vector<float> error;
  for (int chunk = 0; chunk < state.layout.world_size; chunk++) {
    const float* begin = state.worker.data() + static_cast<uint64_t>(chunk) * state.layout.chunk +
                         segment.chunk_offset;
    error.insert(error.end(), begin, begin + segment.chunk);
  }
  return error;
}
inline std::vector<float> ServerError(const bitrail_error_state& state, size_t index) {
  const engine::Segment& segment = state.layout.segments[index];
  const float* begin = state.server.data() + segment.chunk_offset;
  return {begin, begin + segment.chunk};
}

}  // namespace bitrail::test
