// A machine as another rank tells it. What decodes is consistent, encodes to the same bytes, and
// has routes.
#include <cstdlib>

#include "runtime/topology/check.h"
#include "runtime/topology/description.h"
#include "runtime/topology/encode.h"
#include "runtime/topology/paths.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::topology;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> seeds;
  for (const char* text : {"gpus=2 gpu=h100 nvlink=18 nics=2 nic=400G pcie=5", "nics=2 nic=1G"}) {
    Cluster cluster;
    require(read_description(text, "d", &cluster).ok());
    seeds.push_back(encode(cluster.kinds[0]));
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes(data, data + size);
  Machine machine;
  if (!decode(bytes, "rank 1", &machine).ok()) return 0;
  require(check(machine, "decoded").ok());
  require(encode(machine) == bytes);
  const Routes routes = find_routes(machine);
  require(routes.between.size() == machine.gpus.size() * machine.gpus.size());
  return 0;
}
