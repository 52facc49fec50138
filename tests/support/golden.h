// Golden values recorded from DeepSpeed's optimizers and compressed all-reduce: reading them
// (format: tests/data/onebit/README.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bitrail::test {

// One case: its JSON and the arrays it stores.
struct Golden {
  nlohmann::json text;
  std::vector<uint8_t> binary;

  // The array of that kind; `when` is the step of a trajectory or the iteration of a collective,
  // `tensor` is empty for a collective. `found` false: the case does not store it (empty result).
  struct Floats {
    bool found = false;
    std::vector<float> values;
  };
  Floats floats(int when, int rank, const std::string& kind, const std::string& tensor = "") const;
  // The same for an array of bytes (sign bits); empty if not stored.
  std::vector<uint8_t> bytes(int when, int rank, const std::string& kind) const;
};

// `name` as in index.json, with its folder: "traj/adam_w2", "allreduce/n37_w3". Throws
// std::runtime_error when a file is missing or short.
Golden ReadGolden(const std::string& name);
// index.json.
nlohmann::json ReadGoldenIndex();
// A whole file of float32 next to index.json: "grads.f32", "init_params.f32", "masks.f32".
std::vector<float> ReadGoldenFloats(const std::string& file);

// The README's generator of inputs that are not stored: n values in [-2, 2).
std::vector<float> GoldenBell(uint64_t seed, size_t n);
// CRC-32 as recorded. Ours are least-significant-bit-first bits, the recorded ones most-significant
// first: each byte is reversed on the way.
uint32_t GoldenCrc(const uint8_t* bits, size_t bytes);

// max |a - b| over max(max |b|, floor): what the README's tolerances are about.
double GoldenDistance(const float* a, const float* b, size_t n, double floor = 0);

// What a rank of a recorded all-reduce gives to its `when`-th call: n values.
std::vector<float> GoldenInput(const Golden& golden, int when, size_t n, int rank);

}  // namespace bitrail::test
