// The worker's side of the 1-bit kinds on host lanes: scale, verdict, pack.
//
//   b = x + e;  s = ||b|| / sqrt(length)  (or mean |b|);  q = sign(b), 0 counts as plus;  e = b - s
//   q
#include "kernels/host/pack.h"
#include "kernels/host/scale.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_parts.h"
#include "runtime/engine/onebit_scale.h"

namespace bitrail::engine {
namespace {

constexpr float kRefuse = 1;     // verdict flag
constexpr size_t kAhead = 2048;  // bytes to prefetch ahead in values read for the first time

bool own_only(const OnebitCall& call) { return call.mode == OnebitMode::allgather; }

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

void pack_part(OnebitCall& call, const Part& part, uint64_t chunk, float scale, uint8_t* bits,
               float* error, size_t ahead) {
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
    if (done != 0) kernels::PackSignsAhead(x, scale, done, bits, error, ahead);
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
                error + offset, kAhead);
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
                error + base + offset, layout.block * sizeof(float));
    });
  });
}

}  // namespace bitrail::engine
