#include "runtime/topology/hwloc_xml.h"

#include <string_view>

#include "runtime/topology/hwloc_machine.h"

namespace bitrail::topology {
namespace {

constexpr int64_t kMaxIndex = 65'535;  // of processors and nodes: sizes of the importer's sets

Status check_version(const XmlFile& file) {
  const pugi::xml_node root = file.document.document_element();
  const std::string_view version = root.attribute("version").value();
  if (version.empty())
    return failure(BITRAIL_ERR_CONFIG,
                   "{}: has no version: hwloc 1's XML; `lstopo -i FILE NEW.xml` converts it",
                   where(file, root));
  if (!version.starts_with("2."))
    return failure(BITRAIL_ERR_CONFIG,
                   "{}: version=\"{}\": only version 2 is read (of a later one "
                   "`lstopo --export-xml-flags v2 -i FILE NEW.xml` makes it)",
                   where(file, root), version.substr(0, 16));
  return {};
}

// Sets of processors: hexadecimal words with commas, no longer than kMaxIndex bits.
Status check_set(const XmlFile& file, pugi::xml_node node, const char* attribute) {
  const std::string_view text = node.attribute(attribute).value();
  if (text.find_first_not_of("0123456789abcdefABCDEFx,") == std::string_view::npos &&
      text.size() < kMaxIndex / 4)
    return {};
  return failure(BITRAIL_ERR_CONFIG, "{}: {}=\"{}\" is no set of processors", where(file, node),
                 attribute, text.substr(0, 64));
}

Status check_object(const XmlFile& file, pugi::xml_node node) {
  std::string type;
  int64_t unused = 0;
  BITRAIL_TRY(required(file, node, "type", &type));
  BITRAIL_TRY(whole_number(file, node, "os_index", 0, kMaxIndex, 0, &unused));
  BITRAIL_TRY(whole_number(file, node, "gp_index", 0, int64_t{1} << 40, 0, &unused));
  BITRAIL_TRY(whole_number(file, node, "depth", 0, kMaxIndex, 0, &unused));
  BITRAIL_TRY(whole_number(file, node, "osdev_type", 0, 6, 0, &unused));
  for (const char* attribute : {"cpuset", "complete_cpuset", "allowed_cpuset", "nodeset",
                                "complete_nodeset", "allowed_nodeset"})
    BITRAIL_TRY(check_set(file, node, attribute));
  const bool machine = node.parent() == file.document.document_element();
  if (machine != (type == "Machine"))
    return failure(
        BITRAIL_ERR_CONFIG, "{}: {}", where(file, node),
        machine ? "the outermost object has to be the Machine" : "a machine in a machine");
  if ((type == "PCIDev" || type == "Bridge" || type == "OSDev") && machine)
    return failure(BITRAIL_ERR_CONFIG, "{}: hangs on nothing", where(file, node));
  return {};
}

Status check_elements(const XmlFile& file, pugi::xml_node parent) {
  for (pugi::xml_node node : parent.children()) {
    if (node.type() != pugi::node_element) continue;
    if (std::string_view(node.name()) == "object") BITRAIL_TRY(check_object(file, node));
    BITRAIL_TRY(check_elements(file, node));
  }
  return {};
}

}  // namespace

Status read_hwloc_xml(const XmlFile& file, Machine* machine) {
  BITRAIL_TRY(check_version(file));
  const pugi::xml_node root = file.document.document_element();
  if (!root.child("object"))
    return failure(BITRAIL_ERR_CONFIG, "{}: no object in it", where(file, root));
  BITRAIL_TRY(check_elements(file, root));
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return failure(BITRAIL_ERR_SYSTEM, "hwloc does not start");
  const HwlocTopology topology(made);
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_set_xmlbuffer(made, file.text.c_str(),
                                   static_cast<int>(file.text.size()) + 1) != 0 ||
      hwloc_topology_load(made) != 0)
    return failure(BITRAIL_ERR_CONFIG, "{}: hwloc cannot import it", file.name);
  return machine_of(made, machine);
}

}  // namespace bitrail::topology
