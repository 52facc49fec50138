// Each value is the kernel's memory traffic per second over memcpy's, which counts 8 bytes an
// element (4 read, 4 written). Traffic of a kernel is what it has to read and write, not what the
// machine adds to it.
#include "tools/bitrail/bench_kernels.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "kernels/host/adam.h"
#include "kernels/host/convert.h"
#include "kernels/host/pack.h"
#include "kernels/host/reduce.h"
#include "kernels/host/scale.h"
#include "kernels/host/target.h"
#include "kernels/host/unpack.h"
#include "runtime/common/clock.h"

namespace bitrail::tools {
namespace {

constexpr size_t kCount = size_t{64} << 20;  // float32 elements: 256 MiB an array
constexpr int kRanks = 4;

struct Unmap {
  size_t bytes = 0;
  void operator()(void* p) const { munmap(p, bytes); }
};
template <typename T>
using Array = std::unique_ptr<T[], Unmap>;

// Pages come from the system here, so that no run pays for them. Null: no memory.
template <typename T>
Array<T> Allocate(size_t count) {
  const size_t bytes = count * sizeof(T);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  std::memset(p, 0, bytes);
  return Array<T>(static_cast<T*>(p), Unmap{bytes});
}

struct Arrays {
  Array<float> x = Allocate<float>(kCount);
  Array<float> error = Allocate<float>(kCount);
  Array<float> m = Allocate<float>(kCount);
  Array<float> v = Allocate<float>(kCount);
  Array<uint8_t> bits = Allocate<uint8_t>(kRanks * kCount / 8);
  bool complete() const { return x && error && m && v && bits; }
};

struct Case {
  std::string name;
  double bytes = 0;  // of traffic an element
  double bar = 0;    // 0: none
  std::function<void()> run;
};

double Seconds(const std::function<void()>& run) {
  const int64_t start = now_ns();
  run();
  return static_cast<double>(now_ns() - start) * 1e-9;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Values in [-1, 1) and random bits, the same in every run.
void Fill(const Arrays& arrays) {
  uint64_t state = 1;
  const auto next = [&state] {  // SplitMix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  for (size_t i = 0; i < kCount; i++) {
    arrays.x[i] = static_cast<float>(static_cast<int32_t>(next() >> 32)) * 0x1p-31f;
  }
  for (size_t i = 0; i < kRanks * kCount / 8; i += 8) {
    const uint64_t word = next();
    std::memcpy(&arrays.bits[i], &word, sizeof word);
  }
  std::fill_n(arrays.v.get(), kCount, 0.25f);
}

// `wide`: a target with 512-bit vectors, which has the higher bars.
std::vector<Case> Cases(const Arrays& arrays, const std::string& target, bool wide) {
  float* x = arrays.x.get();
  float* error = arrays.error.get();
  float* m = arrays.m.get();
  float* v = arrays.v.get();
  uint8_t* bits = arrays.bits.get();
  const auto half = reinterpret_cast<uint16_t*>(m);
  static volatile double sink;  // keeps the sum from being optimised away
  (void)sink;
  const auto reduce = kernels::FindReduce(kernels::Type::float32, kernels::Op::sum);
  const kernels::AdamFactors factors{1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f};
  std::vector<Case> cases;
  cases.push_back(
      {"pack", 12.125, 0.90, [=] { kernels::PackSigns(x, 0.5f, kCount, bits, error); }});
  cases.push_back({"scale pass and pack", 20.125, wide ? 0.82 : 0.75, [=] {
                     sink = kernels::SquaredSum(x, error, kCount);
                     kernels::PackSigns(x, 0.5f, kCount, bits, error);
                   }});
  cases.push_back({"unpack-average of 4 ranks", 8 + kRanks / 8.0, 0.60, [=] {
                     const uint8_t* from[kRanks];
                     const float weights[kRanks] = {0.1f, 0.2f, 0.3f, 0.4f};
                     for (int r = 0; r < kRanks; r++) from[r] = bits + r * (kCount / 8);
                     kernels::UnpackAverage(from, weights, kRanks, kCount, error);
                   }});
  cases.push_back({"scale pass", 8, 0, [=] { sink = kernels::SquaredSum(x, error, kCount); }});
  cases.push_back({"unpack", 4.125, 0, [=] { kernels::UnpackSigns(bits, 0.5f, kCount, m); }});
  cases.push_back({"sum of 2 float32", 12, 0, [=] {
                     const void* sources[2] = {x, m};
                     reduce(sources, 2, kCount, m);
                   }});
  cases.push_back({"float32 to float16", 6, 0, [=] { kernels::FloatToHalf(x, kCount, half); }});
  cases.push_back({"float16 to float32", 6, 0, [=] { kernels::HalfToFloat(half, kCount, error); }});
  cases.push_back({"Adam step", 28, 0,
                   [=] { kernels::AdamStep(factors, 0.9, 0.999, kCount, x, m, v, error); }});
  for (Case& one : cases) one.name += ", " + target;
  return cases;
}

struct Row {
  std::string name, unit;
  double value = 0, bar = 0;
  bool ok = true;
};

void Print(const Row& row) {
  const std::string bar = row.bar > 0 ? std::to_string(row.bar).substr(0, 4) : "-";
  std::printf("%-40s %8.3f %-6s %6s  %s\n", row.name.c_str(), row.value, row.unit.c_str(),
              bar.c_str(), row.bar > 0 ? (row.ok ? "yes" : "NO") : "-");
  std::fflush(stdout);
}

// Alternates the kernel with memcpy, so that whatever else the machine does hits both alike.
Row Measure(const Case& one, const Arrays& arrays, int repetitions, std::vector<double>& copies) {
  const auto copy = [&] { std::memcpy(arrays.m.get(), arrays.x.get(), kCount * sizeof(float)); };
  std::vector<double> kernel_seconds, copy_seconds;
  one.run();
  for (int i = 0; i < repetitions; i++) {
    kernel_seconds.push_back(Seconds(one.run));
    copy_seconds.push_back(Seconds(copy));
  }
  copies.insert(copies.end(), copy_seconds.begin(), copy_seconds.end());
  const double value = one.bytes / Median(kernel_seconds) / (8 / Median(copy_seconds));
  return {one.name, "memcpy", value, one.bar, value >= one.bar};
}

bool Write(const std::vector<Row>& rows, const std::string& path) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json bar = nullptr;
    if (row.bar > 0) bar = row.bar;
    list.push_back({{"name", row.name},
                    {"value", row.value},
                    {"unit", row.unit},
                    {"bar", bar},
                    {"ok", row.ok}});
  }
  std::ofstream file(path);
  file << list.dump(1) << '\n';
  file.close();
  return file.good();
}

// AVX-512 and AVX2 where the machine has them, otherwise its best.
std::vector<int64_t> MeasuredTargets() {
  std::vector<int64_t> chosen;
  const std::vector<int64_t> all = kernels::Targets();
  for (const int64_t target : all) {
    const std::string name = kernels::TargetName(target);
    if (name == "AVX3" || name == "AVX2") chosen.push_back(target);
  }
  if (chosen.empty() && !all.empty()) chosen.push_back(all.front());
  return chosen;
}

}  // namespace

int BenchKernels(bool quick, const std::string& json_path) {
  const Arrays arrays;
  if (!arrays.complete()) {
    std::fprintf(stderr, "bench kernels: no memory for 4 arrays of %zu MiB\n", kCount >> 18);
    return 2;
  }
  Fill(arrays);
  std::printf("%-40s %8s %-6s %6s  %s\n", "name", "value", "", "bar", "ok");
  std::vector<Row> rows;
  std::vector<double> copies;
  for (const int64_t target : MeasuredTargets()) {
    kernels::ForceTarget(target);
    const std::string name = kernels::TargetName(target);
    for (const Case& one : Cases(arrays, name == "AVX3" ? "AVX-512" : name, name == "AVX3")) {
      rows.push_back(Measure(one, arrays, quick ? 5 : 15, copies));
      Print(rows.back());
    }
  }
  kernels::ForceTarget(0);
  rows.push_back({"memcpy, 8 bytes an element", "GB/s", 8.0 * kCount / Median(copies) * 1e-9});
  Print(rows.back());
  if (!json_path.empty() && !Write(rows, json_path)) {
    std::fprintf(stderr, "bench kernels: cannot write %s\n", json_path.c_str());
    return 2;
  }
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.ok; }) ? 0 : 1;
}

}  // namespace bitrail::tools
