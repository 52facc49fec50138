// The receiver's side of the 1-bit kinds on host lanes: signs back into values, to the caller or
// its consumer.
#include "kernels/host/stream.h"
#include "kernels/host/unpack.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_parts.h"
#include "runtime/engine/onebit_scale.h"

namespace bitrail::engine {
namespace {

void unpack_part(OnebitCall& call, const Part& part, uint64_t chunk, float scale,
                 const uint8_t* bits) {
  const Place at = place(call, part, chunk, /*own_only=*/false);
  const bool tiled = call.consume != nullptr || call.type != BITRAIL_FLOAT32;
  // Pieces of a long output are not read again before they have left the caches.
  const auto unpack = !tiled && call.layout->elements >= kernels::kStreamFrom
                          ? kernels::UnpackSignsStream
                          : kernels::UnpackSigns;
  const uint64_t stride = tiled ? kTile : std::max<uint64_t>(at.valid, 1);
  for (uint64_t skip = 0; skip < at.valid; skip += stride) {
    const uint64_t n = std::min(stride, at.valid - skip);
    float* out = result(call, at, skip, call.tile.data());
    unpack(bits + skip / 8, scale, n, out);
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
