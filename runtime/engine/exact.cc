// Execution of the exact kinds on host lanes: copy, and reduce of any number of sources in one
// pass.
#include <cstring>

#include "runtime/engine/executors.h"
#include "runtime/engine/run.h"

namespace bitrail::engine {
namespace {

constexpr uint32_t kInlineSources = 64;

}  // namespace

void execute_copy(Run& run, const Step& step) {
  const Span& from = *run.program->read(step, 0);
  const Span& to = *run.program->write(step, 0);
  if (run.at(from) != run.at(to) && from.bytes != 0)
    std::memcpy(run.at(to), run.at(from), from.bytes);
}

// The schedule lists the sources in rank order where the result must not depend on arrival. In the
// last reduction an average's factor is applied while the elements are in the cache.
void execute_reduce(Run& run, const Step& step) {
  const Span& to = *run.program->write(step, 0);
  const void* inline_sources[kInlineSources];
  std::vector<const void*> many;
  const void** sources = inline_sources;
  if (step.reads > kInlineSources) {
    many.resize(step.reads);
    sources = many.data();
  }
  for (uint32_t i = 0; i < step.reads; i++) sources[i] = run.at(*run.program->read(step, i));
  const size_t n = to.bytes / run.element_bytes;
  run.reduce(sources, static_cast<int>(step.reads), n, run.at(to));
  if (step.final_sum && run.multiply != nullptr) run.multiply(run.at(to), n, run.factor);
}

}  // namespace bitrail::engine
