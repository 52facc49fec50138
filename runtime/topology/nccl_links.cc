#include "runtime/topology/bandwidth.h"
#include "runtime/topology/check.h"
#include "runtime/topology/nccl_attributes.h"
#include "runtime/topology/nccl_draft.h"

namespace bitrail::topology {
namespace {

constexpr uint32_t kNvSwitchClass = 0x068000, kProcessorClass = 0x068001;

Status link_bandwidth(const XmlFile& file, pugi::xml_node node, const Gpu& gpu, double* each) {
  *each = nvlink_bandwidth(gpu.sm);
  if (std::string_view(node.name()) == "nvlink") return {};
  int64_t gfx = 0;
  BITRAIL_TRY(whole_number(file, node.parent(), "gcn", 0, 99'999, 0, &gfx));
  *each = xgmi_bandwidth(static_cast<int>(gfx));
  return {};
}

// Where the link leads; false, with a note, where that is nothing that can be used.
bool find_target(const XmlFile& file, pugi::xml_node node, const std::string& busid,
                 uint32_t target_class, Draft* draft, NvLink* link) {
  Machine& m = draft->machine;
  if (target_class == kNvSwitchClass) {
    link->target = LinkTarget::nvswitch;
    link->peer = nvswitch_number(busid, draft);
    return true;
  }
  if (target_class == kProcessorClass) {
    link->target = LinkTarget::processor;
    link->peer = m.pci[static_cast<size_t>(m.gpus[static_cast<size_t>(link->gpu)].pci)].numa;
    return true;
  }
  const auto found = draft->gpu_at.find(busid);
  const char* wrong = found == draft->gpu_at.end() ? "which is no GPU of this file"
                      : found->second == link->gpu ? "which is the GPU itself"
                                                   : nullptr;
  if (wrong == nullptr) {
    link->peer = found->second;
    return true;
  }
  note(&m, fmt::format("line {}: {} of {} leads to {}, {}: left out", line_of(file, node),
                       node.name(), m.gpus[static_cast<size_t>(link->gpu)].name, busid, wrong));
  return false;
}

Status read_link_element(const XmlFile& file, pugi::xml_node node, int gpu, Draft* draft) {
  Machine& m = draft->machine;
  std::string target;
  int64_t count = 0;
  uint32_t target_class = 0;
  double each = 0;
  BITRAIL_TRY(read_busid(file, node, "target", &target));
  BITRAIL_TRY(whole_number(file, node, "count", 1, 1024, 1, &count));
  BITRAIL_TRY(read_class(file, node, "tclass", &target_class));
  BITRAIL_TRY(link_bandwidth(file, node, m.gpus[static_cast<size_t>(gpu)], &each));
  NvLink link;
  link.gpu = gpu;
  link.count = static_cast<int>(count);
  link.bandwidth = each * static_cast<double>(count);
  if (find_target(file, node, target, target_class, draft, &link)) m.links.push_back(link);
  if (m.links.size() > kMaxLinks || m.nvswitches.size() > kMaxSwitches)
    return failure(BITRAIL_ERR_CONFIG, "{}: more NVLinks than any machine has", where(file, node));
  return {};
}

}  // namespace

int nvswitch_number(const std::string& busid, Draft* draft) {
  std::vector<std::string>& switches = draft->machine.nvswitches;
  const auto [found, added] =
      draft->switch_at.try_emplace(busid, static_cast<int>(switches.size()));
  if (added) switches.push_back(busid);
  return found->second;
}

Status read_links(const XmlFile& file, Draft* draft) {
  for (size_t gpu = 0; gpu < draft->gpus.size(); gpu++)
    for (const char* name : {"nvlink", "xgmi"})
      for (pugi::xml_node node : draft->gpus[gpu].children(name))
        BITRAIL_TRY(read_link_element(file, node, static_cast<int>(gpu), draft));
  return {};
}

}  // namespace bitrail::topology
