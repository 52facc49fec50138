// Descriptions of clusters. What is read has to be consistent.
#include <cstdlib>

#include "runtime/topology/check.h"
#include "runtime/topology/description.h"
#include "runtime/topology/rails.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::topology;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  return {bytes_of("nodes=32 gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G # DGX\n"),
          bytes_of("nodes=2 gpus=4 nics=1 nic=40G switches=0\nnodes=1 nics=2 sockets=2 numa=4"),
          bytes_of("gpus=4 gpu=103 c2c_gbs=200 nvlink_gbs=40.5 pcie=6 lanes=8 mnnvl=1")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Cluster cluster;
  if (!read_description(text, "d", &cluster).ok()) return 0;
  require(check(cluster, "d").ok());
  for (const Machine& machine : cluster.kinds)
    require(fast_rails(machine).size() <= machine.ports.size());
  return 0;
}
