#include "runtime/topology/path.h"

#include <array>

namespace bitrail::topology {
namespace {

struct Words {
  std::string_view name, meaning;
};

constexpr std::array kWords = {
    Words{"LOC", "the same device"},
    Words{"NVL", "NVLink, directly or through NVSwitches"},
    Words{"NVB", "NVLink through one other GPU"},
    Words{"C2C", "coherent link between GPU and processor"},
    Words{"PIX", "at most one PCI switch"},
    Words{"PXB", "several PCI switches"},
    Words{"P2C", "C2C to the processor, then PCI"},
    Words{"PXN", "NVLink to a GPU near the NIC, then PCI"},
    Words{"PHB", "host bridge of one NUMA node"},
    Words{"SYS", "from one NUMA node to another"},
    Words{"NET", "between machines"},
    Words{"DIS", "no path"},
};

}  // namespace

std::string_view name(Path path) { return kWords[static_cast<size_t>(path)].name; }
std::string_view meaning(Path path) { return kWords[static_cast<size_t>(path)].meaning; }

}  // namespace bitrail::topology
