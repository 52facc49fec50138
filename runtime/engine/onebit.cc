// Execution of the 1-bit kinds on host lanes.
//
//   b = x + e;  s = ||b|| / sqrt(length)  (or mean |b|);  q = sign(b), 0 counts as plus;  e = b - s
//   q server: a = sum_r q_r (s_r / W) in rank order, a += E;  S, Q, E likewise from a;  result = S
//   Q
//
// The accumulator of the server is its error buffer: E holds a between the average and the second
// packing.
#include "runtime/engine/onebit.h"

#include <cmath>

#include "kernels/host/pack.h"
#include "kernels/host/scale.h"
#include "kernels/host/unpack.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_parts.h"
#include "runtime/engine/run.h"

namespace bitrail::engine {
namespace {

constexpr float kRefuse = 1;  // verdict flag
constexpr int kInlineRanks = 64;

// A range of one chunk: which, and from where to where inside it.
struct Stretch {
  uint64_t chunk = 0, begin = 0, end = 0;
};

Stretch stretch(const OnebitLayout& layout, const Span& span) {
  if (span.begin >= span.end) return {};
  const uint64_t chunk = span.begin / layout.chunk;
  return {chunk, span.begin - chunk * layout.chunk, span.end - chunk * layout.chunk};
}

bool own_only(const OnebitCall& call) { return call.mode == OnebitMode::allgather; }

float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
uint8_t* octets(std::byte* bytes) { return reinterpret_cast<uint8_t*>(bytes); }

// Sum of b^2 or |b| over a part; `error` is the part's, null for none.
double part_sum(OnebitCall& call, const Part& part, uint64_t chunk, const float* error) {
  const auto sum = call.layout->l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  const Place at = place(call, part, chunk, own_only(call));
  double total = 0;
  const uint64_t stride = needs_tile(call) ? kTile : std::max<uint64_t>(at.valid, 1);
  for (uint64_t skip = 0; skip < at.valid; skip += stride) {
    const uint64_t n = std::min(stride, at.valid - skip);
    const float* x = load(call, part, at, skip, n, call.tile.data());
    total += sum(x, error != nullptr ? error + skip : nullptr, n);
  }
  if (error != nullptr && at.valid < part.length)  // padding carries an error of its own
    total += sum(error + at.valid, nullptr, part.length - at.valid);
  return total;
}

float scale_of(const OnebitLayout& layout, double sum, uint64_t length) {
  if (length == 0) return 0;
  if (layout.l1) return static_cast<float>(sum / static_cast<double>(length));
  return static_cast<float>(static_cast<double>(static_cast<float>(std::sqrt(sum))) /
                            std::sqrt(static_cast<double>(length)));
}

void pack_part(OnebitCall& call, const Part& part, uint64_t chunk, float scale, uint8_t* bits,
               float* error) {
  const Place at = place(call, part, chunk, own_only(call));
  uint64_t done = 0;
  if (needs_tile(call)) {
    float* tile = call.tile.data();
    while (done < at.valid) {
      const uint64_t n = std::min(kTile, at.valid - done);
      const float* x = load(call, part, at, done, n, tile);
      const uint64_t padded = std::min((n + 7) / 8 * 8, part.length - done);
      for (uint64_t i = n; i < padded; i++) tile[i] = 0;
      kernels::PackSigns(x, scale, padded, bits + done / 8, error + done);
      done += padded;
    }
  } else {
    const float* x = static_cast<const float*>(call.send) + at.buffer;
    done = at.valid / 8 * 8;
    if (done != 0) kernels::PackSigns(x, scale, done, bits, error);
    if (done < at.valid) {  // the last byte is part data, part padding
      float tail[8] = {};
      std::copy(x + done, x + at.valid, tail);
      kernels::PackSigns(tail, scale, 8, bits + done / 8, error + done);
      done += 8;
    }
  }
  if (done < part.length)
    kernels::PackSigns(nullptr, scale, part.length - done, bits + done / 8, error + done);
}

// A record of block scales: the scales of its blocks, then its bits.
struct Record {
  std::byte* scales;
  uint8_t* bits;
};

Record record(const OnebitLayout& layout, std::byte* bytes, uint64_t elements) {
  const uint64_t blocks = (elements + layout.block - 1) / layout.block;
  return {bytes, octets(bytes) + blocks * sizeof(float)};
}

float stored_scale(const std::byte* scales, uint64_t index) {
  float scale;
  std::memcpy(&scale, scales + index * sizeof(float), sizeof(float));
  return scale;
}

void store_scale(std::byte* scales, uint64_t index, float scale) {
  std::memcpy(scales + index * sizeof(float), &scale, sizeof(float));
}

bool usable(float scale) { return std::isfinite(scale) && scale >= 0; }

// Calls visit(begin, end, block index) for the blocks of [begin, end) of a chunk.
template <typename Visit>
void for_each_block(const OnebitLayout& layout, uint64_t begin, uint64_t end, Visit visit) {
  uint64_t index = 0;
  for (uint64_t at = begin; at < end; at += layout.block, index++)
    visit(at, std::min(at + layout.block, end), index);
}

void fail(Run& run, bitrail_status_t code, const char* what) {
  if (run.status.ok()) run.status = Status(code, what);
}

}  // namespace

void execute_scale(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const float* error = floats(run.at(*run.program->read(step, 1)));
  float* scales = floats(run.at(*run.program->write(step, 0)));
  const bool own = own_only(call);
  const uint64_t first = own ? static_cast<uint64_t>(call.rank) : 0;
  const uint64_t last = own ? first + 1 : static_cast<uint64_t>(layout.world_size);
  bool finite = true;
  for (size_t index = 0; index < layout.segments.size(); index++) {
    const Segment& segment = layout.segments[index];
    double sum = 0;
    for (uint64_t chunk = first; chunk < last; chunk++) {
      const uint64_t origin = own ? 0 : chunk * layout.chunk;
      // Blocks take their scales when they are packed, from the cache; here only the data is looked
      // at.
      const float* part_error = layout.block != 0 ? nullptr : error + origin + segment.chunk_offset;
      sum += part_sum(call, {index, 0, segment.chunk}, chunk, part_error);
    }
    const float scale = scale_of(layout, sum, segment.chunk * (last - first));
    finite = finite && std::isfinite(scale);
    if (layout.block == 0) scales[index] = scale;
  }
  scales[layout.scales()] = finite ? 0 : kRefuse;
}

void execute_verdict(Run& run, const Step& step) {
  const uint64_t scales = run.onebit->layout->scales();
  for (uint32_t slot = 0; slot < step.reads; slot++) {
    const float* values = floats(run.at(*run.program->read(step, slot)));
    if (values[scales] != 0) run.refused = true;
    for (uint64_t i = 0; i < scales; i++)
      if (!usable(values[i])) run.refused = true;
  }
}

void execute_pack(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  float* error = floats(run.at(*program.write(step, 1)));
  std::byte* out = run.at(*program.write(step, 0));
  if (layout.block == 0) {
    const float* scales = floats(run.at(*program.read(step, 3)));
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      pack_part(call, part, range.chunk, scales[part.segment], octets(out) + offset / 8,
                error + offset);
    });
    return;
  }
  const Record target = record(layout, out, range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    const uint64_t base = begin - range.begin;
    double sum = 0;
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      sum += part_sum(call, part, range.chunk, error + base + offset);
    });
    const float scale = scale_of(layout, sum, end - begin);
    if (!usable(scale)) fail(run, BITRAIL_ERR_NOT_FINITE, "an error buffer overflowed float32");
    store_scale(target.scales, index, scale);
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      pack_part(call, part, range.chunk, scale, target.bits + (base + offset) / 8,
                error + base + offset);
    });
  });
}

namespace {

// Weights and bit pointers of all ranks, for unpacking several at once.
struct Sources {
  const uint8_t* bits[kInlineRanks];
  float weights[kInlineRanks];
};

// Averages the ranks' values of a range: visit(part, offset, length, sources) for stretches with
// one scale a rank.
template <typename Visit>
void average(Run& run, const Step& step, int ranks, uint32_t first_scale, Visit visit) {
  const OnebitLayout& layout = *run.onebit->layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  const float share = static_cast<float>(1.0 / layout.world_size);
  // More ranks than fit: the kernels take any count, so only the arrays grow.
  std::vector<const uint8_t*> many_bits;
  std::vector<float> many_weights;
  Sources few;
  const uint8_t** bits = few.bits;
  float* weights = few.weights;
  if (ranks > kInlineRanks) {
    many_bits.resize(static_cast<size_t>(ranks));
    many_weights.resize(static_cast<size_t>(ranks));
    bits = many_bits.data();
    weights = many_weights.data();
  }
  const uint64_t elements = range.end - range.begin;
  if (layout.block == 0) {
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      for (int r = 0; r < ranks; r++) {
        const uint32_t i = static_cast<uint32_t>(r);
        bits[r] = octets(run.at(*program.read(step, i))) + offset / 8;
        weights[r] = floats(run.at(*program.read(step, first_scale + i)))[part.segment] * share;
      }
      visit(range.chunk, part, offset, bits, weights);
    });
    return;
  }
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    const uint64_t base = begin - range.begin;
    for (int r = 0; r < ranks; r++) {
      const Record source =
          record(layout, run.at(*program.read(step, static_cast<uint32_t>(r))), elements);
      const float scale = stored_scale(source.scales, index);
      if (!usable(scale)) fail(run, BITRAIL_ERR_PROTOCOL, "a peer sent a scale that is no scale");
      weights[r] = scale * share;
    }
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      for (int r = 0; r < ranks; r++) {
        const Record source =
            record(layout, run.at(*program.read(step, static_cast<uint32_t>(r))), elements);
        bits[r] = source.bits + (base + offset) / 8;
      }
      visit(range.chunk, part, base + offset, bits, weights);
    });
  });
}

}  // namespace

void execute_unpack_average(Run& run, const Step& step) {
  const int ranks = run.onebit->layout->world_size;
  float* accumulator = floats(run.at(*run.program->write(step, 0)));
  average(run, step, ranks, static_cast<uint32_t>(ranks) + 1,
          [&](uint64_t, const Part& part, uint64_t offset, const uint8_t* const* bits,
              const float* weights) {
            kernels::UnpackAverage(bits, weights, ranks, part.length, accumulator + offset);
          });
}

void execute_take_average(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const int ranks = call.layout->world_size;
  average(run, step, ranks, static_cast<uint32_t>(ranks),
          [&](uint64_t chunk, const Part& part, uint64_t, const uint8_t* const* bits,
              const float* weights) {
            const Place at = place(call, part, chunk, /*own_only=*/true);
            std::vector<const uint8_t*> shifted(bits, bits + ranks);
            for (uint64_t skip = 0; skip < at.valid; skip += kTile) {
              const uint64_t n = std::min(kTile, at.valid - skip);
              for (int r = 0; r < ranks; r++) shifted[static_cast<size_t>(r)] = bits[r] + skip / 8;
              float* out = result(call, at, skip, call.tile.data());
              kernels::UnpackSum(shifted.data(), weights, ranks, n, out);
              deliver(call, part, at, skip, n, out);
            }
          });
}

void execute_server_scale(Run& run, const Step& step) {
  const OnebitLayout& layout = *run.onebit->layout;
  const float* values = floats(run.at(*run.program->read(step, 0)));
  float* scales = floats(run.at(*run.program->write(step, 0)));
  const auto sum = layout.l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  for (size_t index = 0; index < layout.segments.size(); index++) {
    const Segment& segment = layout.segments[index];
    scales[index] =
        scale_of(layout, sum(values + segment.chunk_offset, nullptr, segment.chunk), segment.chunk);
    if (!usable(scales[index]))
      fail(run, BITRAIL_ERR_NOT_FINITE, "a server error overflowed float32");
  }
  scales[layout.scales()] = 0;
}

void execute_server_pack(Run& run, const Step& step) {
  const OnebitLayout& layout = *run.onebit->layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  float* error = floats(run.at(*program.read(step, 0)));
  std::byte* out = run.at(*program.write(step, 0));
  if (layout.block == 0) {
    const float* scales = floats(run.at(*program.read(step, 1)));
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      kernels::PackSigns(nullptr, scales[part.segment], part.length, octets(out) + offset / 8,
                         error + offset);
    });
    return;
  }
  const auto sum = layout.l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  const Record target = record(layout, out, range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    float* values = error + (begin - range.begin);
    const float scale = scale_of(layout, sum(values, nullptr, end - begin), end - begin);
    if (!usable(scale)) fail(run, BITRAIL_ERR_NOT_FINITE, "a server error overflowed float32");
    store_scale(target.scales, index, scale);
    kernels::PackSigns(nullptr, scale, end - begin, target.bits + (begin - range.begin) / 8,
                       values);
  });
}

namespace {

void unpack_part(OnebitCall& call, const Part& part, uint64_t chunk, float scale,
                 const uint8_t* bits) {
  const Place at = place(call, part, chunk, /*own_only=*/false);
  const bool tiled = call.consume != nullptr || call.type != BITRAIL_FLOAT32;
  const uint64_t stride = tiled ? kTile : std::max<uint64_t>(at.valid, 1);
  for (uint64_t skip = 0; skip < at.valid; skip += stride) {
    const uint64_t n = std::min(stride, at.valid - skip);
    float* out = result(call, at, skip, call.tile.data());
    kernels::UnpackSigns(bits + skip / 8, scale, n, out);
    deliver(call, part, at, skip, n, out);
  }
}

}  // namespace

void execute_unpack(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  std::byte* in = run.at(*program.read(step, 0));
  if (layout.block == 0) {
    const float* scales = floats(run.at(*program.read(step, 1)));
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      if (!usable(scales[part.segment])) {
        fail(run, BITRAIL_ERR_PROTOCOL, "a peer sent a scale that is no scale");
        return;
      }
      unpack_part(call, part, range.chunk, scales[part.segment], octets(in) + offset / 8);
    });
    return;
  }
  const Record source = record(layout, in, range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    const float scale = stored_scale(source.scales, index);
    if (!usable(scale)) {
      fail(run, BITRAIL_ERR_PROTOCOL, "a peer sent a scale that is no scale");
      return;
    }
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      unpack_part(call, part, range.chunk, scale, source.bits + (begin - range.begin + offset) / 8);
    });
  });
}

}  // namespace bitrail::engine
