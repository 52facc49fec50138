// NCCL's topology XML, and hwloc's up to its importer's door. What is read has to be consistent,
// and the routes and rails of it have to be found.
#include <cstdlib>

#include "runtime/topology/check.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "runtime/topology/read.h"
#include "tests/fuzz/seeds.h"
#include "tests/topology/machines.h"

namespace {

using namespace bitrail::topology;

void require(bool condition) {
  if (!condition) std::abort();
}

void explore(const Machine& machine) {
  require(machine.notes.size() <= kMaxNotes);
  const Routes routes = find_routes(machine);
  for (size_t gpu = 0; gpu < routes.gpus; gpu++) {
    require(routes.to_gpu(gpu, gpu).path == Path::loc);
    for (size_t port = 0; port < routes.ports; port++)
      require(routes.to_port(gpu, port).path < Path::net);
  }
  const std::vector<int> all = rails(machine);
  require(fast_rails(machine).size() <= all.size() && cards(machine, all) >= 0);
  for (const std::vector<int>& ports : deal_ports(machine))
    require(machine.ports.empty() == ports.empty());
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  const std::string nccl = three_gpus(), trays = two_trays();
  return {{nccl.begin(), nccl.end()}, {trays.begin(), trays.end()}};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.find("<topology") != std::string::npos) return 0;  // the importer is hwloc's own
  Cluster cluster;
  if (!read_text(text, "t.xml", &cluster).ok()) return 0;
  require(check(cluster, "t.xml").ok());
  for (const Machine& machine : cluster.kinds) explore(machine);
  return 0;
}
