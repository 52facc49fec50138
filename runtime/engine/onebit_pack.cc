// The worker's side of the 1-bit kinds on host lanes behind the verdict: bits and the error they
// leave behind, e = b - s q, together or the error alone. Before it: onebit_worker.cc.
#include "kernels/host/pack.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_sums.h"

namespace bitrail::engine {
namespace {

constexpr size_t kAhead = 2048;  // bytes to prefetch ahead in values read for the first time
constexpr const char* kOverflow = "an error buffer overflowed float32";

void pack_part(OnebitCall& call, const Part& part, uint64_t chunk, const float* values, float scale,
               uint8_t* bits, float* error, size_t ahead) {
  for_each_run(call, part, chunk, values, [&](const float* x, uint64_t at, uint64_t n) {
    kernels::PackSignsAhead(x, scale, n, bits + at / 8, error + at, ahead);
  });
  clear_padding(*call.layout, part, chunk, error);
}

void residual_part(OnebitCall& call, const Part& part, uint64_t chunk, const float* values,
                   float scale, float* error) {
  for_each_run(call, part, chunk, values, [&](const float* x, uint64_t at, uint64_t n) {
    kernels::Residual(x, scale, n, error + at);
  });
  clear_padding(*call.layout, part, chunk, error);
}

}  // namespace

void execute_pack(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  const float* values = coded(run, step);
  float* error = floats(run.at(*program.write(step, 1)));
  std::byte* out = run.at(*program.write(step, 0));
  if (layout.block == 0) {
    const float* scales = floats(run.at(*program.read(step, 3)));
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      pack_part(call, part, range.chunk, from(values, offset), scales[part.segment],
                octets(out) + offset / 8, error + offset, kAhead);
    });
    return;
  }
  const Record target = record(layout, out, range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    const uint64_t base = begin - range.begin;
    const float scale =
        block_scale(call, range.chunk, begin, end, from(values, base), error + base);
    if (!usable(scale)) fail(run, BITRAIL_ERR_NOT_FINITE, kOverflow);
    store_scale(target.scales, index, scale);
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      pack_part(call, part, range.chunk, from(values, base + offset), scale,
                target.bits + (base + offset) / 8, error + base + offset,
                layout.block * sizeof(float));
    });
  });
}

void execute_residual(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const OnebitLayout& layout = *call.layout;
  const Program& program = *run.program;
  const Stretch range = stretch(layout, *program.read(step, 0));
  const float* values = coded(run, step);
  float* error = floats(run.at(*program.write(step, 0)));
  if (layout.block == 0) {
    const float* scales = floats(run.at(*program.read(step, 4)));
    for_each_part(layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
      residual_part(call, part, range.chunk, from(values, offset), scales[part.segment],
                    error + offset);
    });
    return;
  }
  const Record source = record(layout, run.at(*program.read(step, 2)), range.end - range.begin);
  for_each_block(layout, range.begin, range.end, [&](uint64_t begin, uint64_t end, uint64_t index) {
    const float scale = stored_scale(source.scales, index);
    if (!usable(scale)) fail(run, BITRAIL_ERR_NOT_FINITE, kOverflow);
    for_each_part(layout, begin, end, [&](const Part& part, uint64_t offset) {
      const uint64_t at = begin - range.begin + offset;
      residual_part(call, part, range.chunk, from(values, at), scale, error + at);
    });
  });
}

}  // namespace bitrail::engine
