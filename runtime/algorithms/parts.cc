#include "runtime/algorithms/parts.h"

#include <fmt/core.h>

namespace bitrail::algorithms {

using schedule::Buffer;
using schedule::kElements;
using schedule::Role;

CallerBuffers caller_buffers(schedule::Builder* builder, const Request& request) {
  const auto chunks = static_cast<uint32_t>(request.world_size);
  const bool scatters = request.collective == Collective::reduce_scatter ||
                        request.collective == Collective::onebit_reduce_scatter;
  const bool gathers = request.collective == Collective::allgather ||
                       request.collective == Collective::onebit_allgather;
  const Buffer input = {"input",   Role::input, schedule::kDataUnit,
                        kElements, 1,           gathers ? chunks : 1};
  const Buffer output = {"output", Role::output,         schedule::kDataUnit, kElements,
                         1,        scatters ? chunks : 1};
  CallerBuffers buffers;
  if (request.in_place) {
    buffers.input = buffers.output = builder->buffer(scatters ? input : output);
    return buffers;
  }
  buffers.input = builder->buffer(input);
  buffers.output = builder->buffer(output);
  return buffers;
}

std::string schedule_name(const char* algorithm, const Request& request) {
  return fmt::format("{} {} w{} k{}{}{}", algorithm, collective_name(request.collective),
                     request.world_size, pieces_of(request), request.in_place ? " in place" : "",
                     request.block_scale ? " block" : "");
}

Folding folding_of(int world_size) {
  Folding folding;
  while (folding.power * 2 <= world_size) {
    folding.power *= 2;
    folding.steps++;
  }
  folding.folded = world_size - folding.power;
  return folding;
}

}  // namespace bitrail::algorithms
