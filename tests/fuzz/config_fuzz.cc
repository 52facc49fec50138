// The configuration file and the values of variables.
#include <cstdlib>

#include "runtime/config/file.h"
#include "runtime/config/nearest.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::config;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::string all = "# a job\n\n";
  for (const Variable& variable : kVariables) {
    if (variable.name != "BITRAIL_CONFIG") all += fmt::format("{} = 1\n", variable.name);
  }
  return {bytes_of(all), bytes_of("BITRAIL_TIMEOUT_MS=5K\r\nBITRAIL_DEBUG=info\n"),
          bytes_of("BITRAIL_LINK_MBPS = 1e3\nNCCL_DEBUG = INFO\nBITRAIL_RANK=-1")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<Assignment> assignments, unknown;
  if (!parse_file(text, "file", &assignments).ok()) return 0;
  Settings settings;
  if (apply(assignments, &settings, &unknown).ok()) {
    require(settings.timeout_ms >= 1 && settings.ranks_per_node >= 1 && settings.link_us >= 0);
    require(settings.rank >= -1 && settings.rank < kMaxRanks);
    require(settings.transport == "auto" || settings.transport == "ucx" ||
            settings.transport == "verbs");
  }
  for (const Assignment& entry : unknown) require(find(nearest(entry.name)) != nullptr);
  return 0;
}
