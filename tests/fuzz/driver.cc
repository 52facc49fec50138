// Runs a fuzz target without libFuzzer, so that every compiler's ordinary tests include it: its
// seeds, mutations of them, and random bytes, for a second; or the files named on the line.
//
// The inputs of a run are the same every time; BITRAIL's sanitizer builds run the same.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMaxRuns = 200'000;
constexpr std::chrono::milliseconds kTime{1000};
constexpr size_t kMaxBytes = 4096;

using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

size_t below(Random* random, size_t limit) { return limit == 0 ? 0 : (*random)() % limit; }

// One small change: flipped bit, interesting byte, cut, doubled part, inserted or overwritten word.
void mutate(Bytes* input, Random* random) {
  constexpr uint8_t kInteresting[] = {0, 1, 0x7f, 0x80, 0xff, '\n', '='};
  const size_t at = below(random, input->size());
  const auto position = input->begin() + static_cast<ptrdiff_t>(at);
  switch (below(random, 6)) {
    case 0:
      if (!input->empty()) *position ^= static_cast<uint8_t>(1U << below(random, 8));
      break;
    case 1:
      if (!input->empty()) *position = kInteresting[below(random, std::size(kInteresting))];
      break;
    case 2:
      input->resize(at);
      break;
    case 3: {
      const Bytes part(position, input->end());
      input->insert(input->end(), part.begin(), part.end());
      break;
    }
    case 4:
      input->insert(position, static_cast<uint8_t>((*random)()));
      break;
    default: {
      const uint64_t word = below(random, 2) == 0 ? (*random)() : below(random, 1 << 16);
      const size_t bytes = std::min(sizeof word, input->size() - at);
      if (bytes != 0) std::memcpy(input->data() + at, &word, bytes);
    }
  }
  if (input->size() > kMaxBytes) input->resize(kMaxBytes);
}

int run_files(int count, char** names) {
  for (int i = 0; i < count; i++) {
    std::ifstream file(names[i], std::ios::binary);
    const Bytes input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    (void)LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return run_files(argc - 1, argv + 1);
  std::vector<Bytes> seeds = fuzz_seeds();
  seeds.emplace_back();
  for (const Bytes& seed : seeds) (void)LLVMFuzzerTestOneInput(seed.data(), seed.size());
  Random random(1);
  const auto end = std::chrono::steady_clock::now() + kTime;
  int runs = 0;
  for (; runs < kMaxRuns && std::chrono::steady_clock::now() < end; runs++) {
    Bytes input = seeds[below(&random, seeds.size())];
    if (input.empty()) {
      input.resize(below(&random, 256));
      for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    }
    for (size_t changes = 1 + below(&random, 4); changes > 0; changes--) mutate(&input, &random);
    (void)LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%d inputs\n", runs);
  return 0;
}
