// What the hierarchical 1-bit allreduce does inside a node, on host lanes: values to the ranks that
// code them, their sums, the verdict of a rail.
#include <algorithm>

#include "kernels/host/reduce.h"
#include "runtime/engine/executors.h"
#include "runtime/engine/onebit_scale.h"

namespace bitrail::engine {
namespace {

constexpr float kRefuse = 1;  // verdict flag

void load_part(const OnebitCall& call, const Part& part, uint64_t chunk, float* out) {
  const Place at = place(call, part, chunk, /*own_only=*/false);
  for (uint64_t skip = 0; skip < at.valid; skip += kTile) {
    const uint64_t n = std::min(kTile, at.valid - skip);
    const float* x = load(call, part, at, skip, n, out + skip);
    if (x != out + skip) std::copy_n(x, n, out + skip);
  }
  std::fill(out + at.valid, out + part.length, 0.0f);
}

// Sources of a sum, in the ranks' order: their values of a range, null for the own ones.
struct Addends {
  std::vector<const float*> values;
  std::vector<const void*> at;  // of one tile
};

void sum_part(OnebitCall& call, const Part& part, uint64_t chunk, uint64_t offset, Addends* addends,
              float* out) {
  const kernels::ReduceFunction sum = kernels::FindReduce(kernels::Type::float32, kernels::Op::sum);
  const kernels::MultiplyFunction multiply = kernels::FindMultiply(kernels::Type::float32);
  const Place at = place(call, part, chunk, /*own_only=*/false);
  for (uint64_t skip = 0; skip < at.valid; skip += kTile) {
    const uint64_t n = std::min(kTile, at.valid - skip);
    for (size_t i = 0; i < addends->values.size(); i++) {
      const float* values = addends->values[i];
      addends->at[i] = values != nullptr ? values + offset + skip
                                         : load(call, part, at, skip, n, call.tile.data());
    }
    sum(addends->at.data(), static_cast<int>(addends->at.size()), n, out + skip);
    multiply(out + skip, n, static_cast<double>(call.node_factor));
  }
  std::fill(out + at.valid, out + part.length, 0.0f);
}

}  // namespace

void execute_load(Run& run, const Step& step) {
  const OnebitCall& call = *run.onebit;
  const Stretch range = stretch(*call.layout, *run.program->read(step, 0));
  float* out = floats(run.at(*run.program->write(step, 0)));
  for_each_part(*call.layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
    load_part(call, part, range.chunk, out + offset);
  });
}

void execute_node_sum(Run& run, const Step& step) {
  OnebitCall& call = *run.onebit;
  const Stretch range = stretch(*call.layout, *run.program->write(step, 0));
  float* out = floats(run.at(*run.program->write(step, 0)));
  Addends addends;
  for (uint32_t i = 0; i < step.reads; i++) {
    const Span& span = *run.program->read(step, i);
    addends.values.push_back(span.scratch ? floats(run.at(span)) : nullptr);
  }
  addends.at.resize(addends.values.size());
  for_each_part(*call.layout, range.begin, range.end, [&](const Part& part, uint64_t offset) {
    sum_part(call, part, range.chunk, offset, &addends, out + offset);
  });
}

void execute_join(Run& run, const Step& step) {
  const uint64_t scales = run.onebit->layout->scales();
  float* joined = floats(run.at(*run.program->write(step, 0)));
  std::fill_n(joined, scales + 1, 0.0f);
  for (uint32_t slot = 0; slot < step.reads; slot++) {
    const float* values = floats(run.at(*run.program->read(step, slot)));
    const bool good = values[scales] == 0 && std::all_of(values, values + scales, usable);
    if (!good) joined[scales] = kRefuse;
  }
}

}  // namespace bitrail::engine
