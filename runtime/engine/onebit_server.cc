// The server's side of the 1-bit kinds on host lanes: average, scale, pack again.
//
//   a = sum_r q_r (s_r / W) in rank order, a += E;  S = scale(a);  Q = sign(a);  E = a - S Q
//
// The accumulator is the error buffer: E holds a between the average and the second packing.
#include "kernels/host/pack.h"
#include "kernels/host/scale.h"
#include "kernels/host/unpack.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_scale.h"
#include "runtime/engine/onebit_sums.h"

namespace bitrail::engine {
namespace {

constexpr int kInlineRanks = 64;

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
  const float share = static_cast<float>(1.0 / layout.voices());
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
  const int ranks = run.onebit->layout->voices();
  float* accumulator = floats(run.at(*run.program->write(step, 0)));
  average(run, step, ranks, static_cast<uint32_t>(ranks) + 1,
          [&](uint64_t, const Part& part, uint64_t offset, const uint8_t* const* bits,
              const float* weights) {
            kernels::UnpackAverage(bits, weights, ranks, part.length, accumulator + offset);
          });
}

void execute_take_average(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const int ranks = call.layout->voices();
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
  const auto* sums = reinterpret_cast<const double*>(run.at(*run.program->read(step, 0)));
  float* scales = floats(run.at(*run.program->write(step, 0)));
  for (size_t index = 0; index < layout.segments.size(); index++) {
    const uint64_t length = scaled_length(layout, layout.segments[index], run.onebit->own_chunk);
    scales[index] = scale_of(layout, sums[index], length);
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
  const auto sum = layout.l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  const Record target = record(layout, out, range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    float* values = error + (begin - range.begin);
    const float scale = scale_of(layout, sum(values, nullptr, end - begin), end - begin);
    if (!usable(scale)) fail(run, BITRAIL_ERR_NOT_FINITE, "a server error overflowed float32");
    store_scale(target.scales, index, scale);
    kernels::PackSigns(nullptr, scale, end - begin, target.bits + (begin - range.begin) / 8,
                       values);
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      clear_padding(layout, part, range.chunk, values + offset);
    });
  });
}

// Signs and the sums for the scale, tile by tile: one pass over the memory.
void execute_server_sign(Run& run, const Step& step) {
  const OnebitLayout& layout = *run.onebit->layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  const float* values = floats(run.at(*program.read(step, 0)));
  uint8_t* bits = octets(run.at(*program.write(step, 0)));
  double* sums = sums_of(run, step, 1);
  const auto sum = layout.l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
    const uint64_t scaled = scaled_length(layout, layout.segments[part.segment], range.chunk);
    const uint64_t summed = std::min(std::max(scaled, part.begin) - part.begin, part.length);
    double total = 0;
    for (uint64_t skip = 0; skip < part.length; skip += kTile) {
      const float* tile = values + offset + skip;
      const uint64_t n = std::min(kTile, part.length - skip);
      if (skip < summed) total += sum(tile, nullptr, std::min(n, summed - skip));
      kernels::SignBits(nullptr, tile, n, bits + (offset + skip) / 8);
    }
    sums[part.segment] += total;
  });
}

void execute_server_residual(Run& run, const Step& step) {
  const OnebitLayout& layout = *run.onebit->layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  float* error = floats(run.at(*program.write(step, 0)));
  const float* scales = floats(run.at(*program.read(step, 1)));
  for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
    kernels::Residual(nullptr, scales[part.segment], part.length, error + offset);
    clear_padding(layout, part, range.chunk, error + offset);
  });
}

}  // namespace bitrail::engine
