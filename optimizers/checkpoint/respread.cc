#include "optimizers/checkpoint/respread.h"

#include <algorithm>
#include <vector>

#include "optimizers/checkpoint/safetensors.h"

namespace bitrail::checkpoint {
namespace {

using engine::OnebitLayout;
using engine::Segment;

// Read at a time: a piece of the file under one checksum, so that none is read twice.
constexpr uint64_t kTileValues = kPiece / sizeof(float);

// A run of values of one segment inside a chunk: elements [element, element + count) of segment
// `segment` lie at [at, at + count) of chunk `chunk`. Padding left out.
struct Run {
  size_t segment = 0;
  uint64_t element = 0, count = 0, chunk = 0, at = 0;
};

Status SameTensors(const OnebitLayout& from, const OnebitLayout& to) {
  if (from.tensors != to.tensors) {
    return failure(BITRAIL_ERR_MISMATCH, "the saved errors are of {} segments, these of {}",
                   from.tensors, to.tensors);
  }
  for (size_t t = 0; t < from.tensors; t++) {
    if (from.segments[t].count == to.segments[t].count) continue;
    return failure(BITRAIL_ERR_MISMATCH,
                   "the saved errors of segment {} are of {} elements, these of {}", t,
                   from.segments[t].count, to.segments[t].count);
  }
  return {};
}

// Calls fn(run) for the values [begin, end) of chunk `chunk` of `layout`, cut at segments.
template <typename Fn>
void ForRuns(const OnebitLayout& layout, uint64_t chunk, uint64_t begin, uint64_t end, Fn fn) {
  const auto after = std::upper_bound(layout.segments.begin(), layout.segments.end(), begin,
                                      [](uint64_t at, const Segment& segment) {
                                        return at < segment.chunk_offset + segment.chunk;
                                      });
  for (auto segment = after; segment != layout.segments.end(); ++segment) {
    if (segment->chunk_offset >= end) break;
    const uint64_t first = std::max(begin, segment->chunk_offset);
    const uint64_t last = std::min(end, segment->chunk_offset + segment->chunk);
    const uint64_t element = chunk * segment->chunk + (first - segment->chunk_offset);
    const uint64_t stop = std::min(segment->count, element + (last - first));
    if (element >= stop) continue;
    fn(Run{static_cast<size_t>(segment - layout.segments.begin()), element, stop - element, chunk,
           first});
  }
}

// Calls fn(part) for the pieces of a run's elements as they lie in `to`; part.element tells which.
template <typename Fn>
void ForParts(const OnebitLayout& to, const Run& run, Fn fn) {
  const Segment& segment = to.segments[run.segment];
  for (uint64_t element = run.element; element < run.element + run.count;) {
    const uint64_t chunk = element / segment.chunk;
    const uint64_t stop = std::min(run.element + run.count, (chunk + 1) * segment.chunk);
    fn(Run{run.segment, element, stop - element, chunk,
           segment.chunk_offset + element % segment.chunk});
    element = stop;
  }
}

struct Weight {
  int rank = 0;
  double overlap = 0;  // |[q W, (q+1) W) n [r W', (r+1) W')|: w(q, r) = overlap / W
};

std::vector<Weight> Weights(int from, int to, int rank) {
  const int64_t w = from, v = to, q = rank;
  std::vector<Weight> weights;
  for (int64_t r = q * w / v; r < w && r * v < (q + 1) * w; r++) {
    const int64_t overlap = std::min((q + 1) * w, (r + 1) * v) - std::max(q * w, r * v);
    if (overlap > 0) weights.push_back({static_cast<int>(r), static_cast<double>(overlap)});
  }
  return weights;
}

}  // namespace

ErrorSource SourceOf(Checkpoint& checkpoint, const std::string& name) {
  return [&checkpoint, name](int rank, uint64_t begin, uint64_t count, float* out) {
    return ReadOfRank(checkpoint, name, rank, Element::float32, begin, count, out);
  };
}

ErrorSource ByVoice(const OnebitLayout& from, const std::vector<int>& holders,
                    const ErrorSource& source) {
  if (from.rails == 0) return source;
  const auto nodes = static_cast<uint64_t>(from.voices());
  const uint64_t share = nodes * from.chunk;
  return [holders, source, nodes, share](int node, uint64_t begin, uint64_t count, float* out) {
    for (uint64_t at = begin; at < begin + count;) {
      const uint64_t rail = at / share;
      const uint64_t stop = std::min(begin + count, (rail + 1) * share);
      const int rank = holders[rail * nodes + static_cast<uint64_t>(node)];
      BITRAIL_TRY(source(rank, at - rail * share, stop - at, out + (at - begin)));
      at = stop;
    }
    return Status();
  };
}

ErrorSource ByChunk(const OnebitLayout& from, const std::vector<int>& holders,
                    const ErrorSource& source) {
  if (from.rails == 0) return source;
  return [holders, source](int chunk, uint64_t begin, uint64_t count, float* out) {
    return source(holders[static_cast<size_t>(chunk)], begin, count, out);
  };
}

Status RespreadWorker(const OnebitLayout& from, const OnebitLayout& to, int rank,
                      const ErrorSource& source, float* worker, int rail) {
  BITRAIL_TRY(SameTensors(from, to));
  const std::vector<Weight> weights = Weights(from.voices(), to.voices(), rank);
  const auto chunks = static_cast<uint64_t>(to.voices());  // of a rail, or all
  const uint64_t first = static_cast<uint64_t>(rail) * chunks;
  std::vector<float> values(kTileValues);
  std::vector<double> sum(kTileValues);
  std::fill_n(worker, chunks * to.chunk, 0.0f);
  for (uint64_t begin = 0; begin < from.padded(); begin += kTileValues) {
    const uint64_t count = std::min(kTileValues, from.padded() - begin);
    std::fill_n(sum.begin(), count, 0.0);
    for (const Weight& weight : weights) {
      BITRAIL_TRY(source(weight.rank, begin, count, values.data()));
      for (uint64_t i = 0; i < count; i++)
        sum[i] += weight.overlap * static_cast<double>(values[i]);
    }
    for (uint64_t at = begin; at < begin + count;) {
      const uint64_t chunk = at / from.chunk, base = chunk * from.chunk;
      const uint64_t stop = std::min(begin + count, base + from.chunk);
      ForRuns(from, chunk, at - base, stop - base, [&](const Run& run) {
        ForParts(to, run, [&](const Run& part) {
          const double* in = &sum[base + run.at - begin + (part.element - run.element)];
          if (part.chunk < first || part.chunk >= first + chunks) return;
          float* out = worker + (part.chunk - first) * to.chunk + part.at;
          for (uint64_t i = 0; i < part.count; i++) {
            out[i] = static_cast<float>(in[i] / from.voices());
          }
        });
      });
      at = stop;
    }
  }
  return {};
}

Status RespreadServer(const OnebitLayout& from, const OnebitLayout& to, int wanted,
                      const ErrorSource& source, float* server) {
  BITRAIL_TRY(SameTensors(from, to));
  const auto own = static_cast<uint64_t>(wanted);
  std::vector<float> values(kTileValues);
  std::fill_n(server, to.chunk, 0.0f);
  for (uint64_t chunk = 0; chunk < static_cast<uint64_t>(from.world_size); chunk++) {
    for (uint64_t begin = 0; begin < from.chunk; begin += kTileValues) {
      const uint64_t count = std::min(kTileValues, from.chunk - begin);
      bool read = false;
      Status status;
      ForRuns(from, chunk, begin, begin + count, [&](const Run& run) {
        ForParts(to, run, [&](const Run& part) {
          if (part.chunk != own || !status.ok()) return;
          if (!read) status = source(static_cast<int>(chunk), begin, count, values.data());
          read = true;
          const float* in = &values[run.at - begin + (part.element - run.element)];
          if (status.ok()) std::copy_n(in, part.count, server + part.at);
        });
      });
      BITRAIL_TRY(status);
    }
  }
  return {};
}

}  // namespace bitrail::checkpoint
