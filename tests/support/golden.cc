#include "tests/support/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace bitrail::test {
namespace {

std::vector<uint8_t> ReadFile(const std::string& name) {
  const std::string path = std::string(BITRAIL_TEST_DATA) + "/onebit/" + name;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

nlohmann::json ReadJson(const std::string& name) {
  const std::vector<uint8_t> text = ReadFile(name);
  return nlohmann::json::parse(text.begin(), text.end());
}

// The entry of `arrays`, or null.
const nlohmann::json* Find(const Golden& golden, int when, int rank, const std::string& kind,
                           const std::string& tensor) {
  for (const auto& array : golden.text.at("arrays")) {
    const int at = array.contains("step") ? array.at("step") : array.at("iter");
    if (at == when && array.at("rank") == rank && array.at("kind") == kind &&
        array.value("tensor", std::string()) == tensor) {
      return &array;
    }
  }
  return nullptr;
}

// Throws where the file is shorter than the entry says.
template <typename T>
std::vector<T> Slice(const Golden& golden, const nlohmann::json& array) {
  const size_t offset = array.at("offset");
  const size_t count = array.at("count");
  if (offset + count * sizeof(T) > golden.binary.size()) throw std::runtime_error("short file");
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), golden.binary.data() + offset, count * sizeof(T));
  return values;
}

uint64_t SplitMix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint8_t Reverse(uint8_t byte) {
  unsigned reversed = 0;
  for (unsigned bit = 0; bit < 8; bit++) reversed |= (byte >> bit & 1u) << (7 - bit);
  return static_cast<uint8_t>(reversed);
}

}  // namespace

Golden::Floats Golden::floats(int when, int rank, const std::string& kind,
                              const std::string& tensor) const {
  const nlohmann::json* array = Find(*this, when, rank, kind, tensor);
  if (array == nullptr) return {};
  return {true, Slice<float>(*this, *array)};
}

std::vector<uint8_t> Golden::bytes(int when, int rank, const std::string& kind) const {
  const nlohmann::json* array = Find(*this, when, rank, kind, "");
  return array == nullptr ? std::vector<uint8_t>() : Slice<uint8_t>(*this, *array);
}

Golden ReadGolden(const std::string& name) {
  Golden golden{ReadJson(name + ".json"), ReadFile(name + ".bin")};
  if (golden.binary.size() != golden.text.at("bin_bytes").get<size_t>()) {
    throw std::runtime_error(name + ".bin has another length than its JSON says");
  }
  return golden;
}

nlohmann::json ReadGoldenIndex() { return ReadJson("index.json"); }

std::vector<float> ReadGoldenFloats(const std::string& file) {
  const std::vector<uint8_t> bytes = ReadFile(file);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::vector<float> GoldenBell(uint64_t seed, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; i++) {
    const uint64_t z = SplitMix(seed + (i + 1) * 0x9e3779b97f4a7c15u);
    const int64_t sum =
        static_cast<int64_t>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    values[i] = static_cast<float>(static_cast<double>(sum - 131070) * 0x1p-16);
  }
  return values;
}

uint32_t GoldenCrc(const uint8_t* bits, size_t bytes) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < bytes; i++) {
    crc ^= Reverse(bits[i]);
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

double GoldenDistance(const float* a, const float* b, size_t n, double floor) {
  double largest = floor, distance = 0;
  for (size_t i = 0; i < n; i++) {
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
    const double difference = std::fabs(static_cast<double>(a[i]) - b[i]);
    if (!(difference <= distance)) distance = difference;  // NaN counts as far away
  }
  return distance == 0 ? 0 : distance / largest;
}

std::vector<float> GoldenInput(const Golden& golden, int when, size_t n, int rank) {
  const auto stored = golden.floats(when, rank, "input");
  if (stored.found) return stored.values;
  const uint64_t seed = golden.text.at("input_seed").get<uint64_t>();
  std::vector<float> values =
      GoldenBell(seed + 100 * static_cast<uint64_t>(when) + static_cast<uint64_t>(rank), n);
  for (float& value : values) value += static_cast<float>(rank) / 64.0f;
  return values;
}

}  // namespace bitrail::test
