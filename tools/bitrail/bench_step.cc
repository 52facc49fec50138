// One process is both worker and server of everything, so the bytes that a step must move are, an
// element of 4-byte values:
//
//   sums and signs   gradient, momentum, error read; bits written           12.125
//   error            gradient, momentum, error read; error written          16
//   server's average bits read, server error read and written; bits written  8.25
//   server's error   read and written                                        8
//   update           bits and variance read, parameter read and written,
//                    momentum written                                       16.125
//
// A rank of W serves 1/W of the elements: 44.25 + (16.125 + W/8)/W.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/host/adam.h"
#include "kernels/host/stream.h"
#include "tools/bitrail/bench_job.h"
#include "tools/bitrail/bench_optimizers.h"

namespace bitrail::tools {
namespace {

constexpr double kBytes = 12.125 + 16 + 8.25 + 8 + 16.125;
constexpr double kBeta1 = 0.9;

struct Adam {
  std::vector<float> gradient, m, v, params;
};

void Produce(void* user, size_t, size_t begin, size_t count, float* out) {
  const Adam& adam = *static_cast<Adam*>(user);
  kernels::Momentum(kBeta1, count, adam.gradient.data() + begin, adam.m.data() + begin, out);
}

void Consume(void* user, size_t, size_t begin, size_t count, const float* values) {
  constexpr kernels::AdamFactors kFactors{1e-4f, 0.9f, 0.999f, 1e-8f, 0.01f};
  Adam& adam = *static_cast<Adam*>(user);
  kernels::OneBitAdamStep(kFactors, count, values, nullptr, true, adam.m.data() + begin,
                          adam.v.data() + begin, adam.params.data() + begin,
                          adam.params.size() >= kernels::kStreamFrom);
}

Status MakeErrors(const Job& job, size_t elements, bitrail_error_state_t* errors) {
  bitrail_onebit_layout_t layout = {};
  layout.struct_size = sizeof layout;
  layout.segments = 1;
  layout.counts = &elements;
  return Check(bitrail_error_state_create(errors, job.comm, &layout));
}

Status Measure(Job& job, uint64_t elements, int rounds, nlohmann::json* result) {
  Adam adam{std::vector<float>(elements), std::vector<float>(elements),
            std::vector<float>(elements, 0.25f), std::vector<float>(elements)};
  uint32_t state = 1;
  for (float& g : adam.gradient) {
    state = state * 1664525u + 1013904223u;
    g = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  std::vector<float> copy(elements);
  bitrail_error_state_t errors = nullptr;
  BITRAIL_TRY(MakeErrors(job, elements, &errors));
  bitrail_onebit_call_t call = {};
  call.struct_size = sizeof call;
  call.type = BITRAIL_FLOAT32;
  call.produce = Produce;
  call.consume = Consume;
  call.user = &adam;
  const auto step = [&] { return Check(bitrail_onebit_allreduce(errors, &call, nullptr)); };
  const auto run_copy = [&] {
    std::memcpy(copy.data(), adam.gradient.data(), elements * sizeof(float));
    return Status();
  };
  nlohmann::json steps = nlohmann::json::array(), copies = nlohmann::json::array();
  Status status = step();  // scratch is made here
  for (int i = 0; i < rounds && status.ok(); i++) {
    status = Timed(job, step, &steps);
    if (status.ok()) status = Timed(job, run_copy, &copies);
  }
  (void)bitrail_error_state_destroy(errors);
  *result = {{"bytes", kBytes}, {"step", steps}, {"copy", copies}};
  return status;
}

}  // namespace

int BenchStep(uint64_t elements, int rounds) {
  return RunJob("step", [&](Job& job, nlohmann::json* result) -> Status {
    if (job.ranks != 1) return Status(BITRAIL_ERR_UNSUPPORTED, "one process measures alone");
    return Measure(job, elements, rounds, result);
  });
}

}  // namespace bitrail::tools
