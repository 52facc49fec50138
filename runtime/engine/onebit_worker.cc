// The worker's side of the 1-bit kinds on host lanes, before anything may change: sums, signs,
// scales, verdict. Behind the verdict: onebit_pack.cc.
//
//   b = x + e;  s = ||b|| / sqrt(length)  (or mean |b|);  q = sign(b), 0 counts as plus
#include "kernels/host/pack.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_sums.h"

namespace bitrail::engine {
namespace {

constexpr float kRefuse = 1;  // verdict flag

void sign_part(OnebitCall& call, const Part& part, uint64_t chunk, const float* values,
               const float* error, uint8_t* bits) {
  for_each_run(call, part, chunk, values, [&](const float* x, uint64_t at, uint64_t n) {
    kernels::SignBits(x, error + at, n, bits + at / 8);
  });
}

// Signs of a part and the sum of its b^2 or |b|, tile by tile: one pass over the memory.
double sum_and_sign(OnebitCall& call, const Part& part, uint64_t chunk, const float* values,
                    const float* error, uint8_t* bits) {
  const auto sum = call.layout->l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  double total = 0;
  for_each_run(call, part, chunk, values, [&](const float* x, uint64_t at, uint64_t n) {
    for (uint64_t skip = 0; skip < n; skip += kTile) {
      const uint64_t length = std::min(kTile, n - skip);
      const float* e = error + at + skip;
      total += x == nullptr ? sum(e, nullptr, length) : sum(x + skip, e, length);
      kernels::SignBits(x == nullptr ? nullptr : x + skip, e, length, bits + (at + skip) / 8);
    }
  });
  return total;
}

}  // namespace

void execute_scan(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const Stretch range = stretch(layout, *run.program->read(step, 0));
  const float* error = floats(run.at(*run.program->read(step, 1)));
  const float* values = coded(run, step);
  double* sums = sums_of(run, step, 0);
  const bool blocks = layout.block != 0;
  for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
    // Blocks take their scales when they are packed, from the cache; here only the data is looked
    // at.
    sums[blocks ? 0 : part.segment] +=
        part_sum(call, part, range.chunk, from(values, offset), blocks ? nullptr : error + offset);
  });
}

void execute_sign(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const Stretch range = stretch(layout, *run.program->read(step, 0));
  const float* error = floats(run.at(*run.program->read(step, 1)));
  std::byte* out = run.at(*run.program->write(step, 0));
  const float* values = coded(run, step);
  double* sums = sums_of(run, step, 1);
  if (layout.block == 0) {
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      sums[part.segment] += sum_and_sign(call, part, range.chunk, from(values, offset),
                                         error + offset, octets(out) + offset / 8);
    });
    return;
  }
  const Record target = record(layout, out, range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    const uint64_t base = begin - range.begin;
    const float scale =
        block_scale(call, range.chunk, begin, end, from(values, base), error + base);
    sums[0] += scale;
    store_scale(target.scales, index, scale);
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      sign_part(call, part, range.chunk, from(values, base + offset), error + base + offset,
                target.bits + (base + offset) / 8);
    });
  });
}

void execute_scale(Run& run, const Step& step) {
  const OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const auto* sums = reinterpret_cast<const double*>(run.at(*run.program->read(step, 0)));
  float* scales = floats(run.at(*run.program->write(step, 0)));
  const bool own = own_only(call);
  const uint64_t first = own ? call.own_chunk : call.first_chunk;
  const uint64_t last = first + (own ? 1 : call.chunks);
  bool finite = std::isfinite(sums[0]);
  for (uint64_t index = 0; index < layout.scales(); index++) {
    uint64_t length = 0;
    for (uint64_t chunk = first; chunk < last; chunk++)
      length += scaled_length(layout, layout.segments[index], chunk);
    scales[index] = scale_of(layout, sums[index], length);
    finite = finite && std::isfinite(scales[index]);
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

}  // namespace bitrail::engine
