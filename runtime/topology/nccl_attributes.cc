#include "runtime/topology/nccl_attributes.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "runtime/topology/bandwidth.h"

namespace bitrail::topology {
namespace {

Status bad(const XmlFile& file, pugi::xml_node node, const char* attribute,
           std::string_view expected) {
  return failure(BITRAIL_ERR_CONFIG, "{}: {}=\"{}\" is not {}", where(file, node), attribute,
                 std::string_view(node.attribute(attribute).value()).substr(0, 64), expected);
}

bool hexadecimal(std::string_view text, size_t least, size_t most) {
  return text.size() >= least && text.size() <= most &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// DOMAIN:BUS:DEVICE.FUNCTION
bool is_busid(std::string_view text) {
  const size_t domain = text.find(':');
  if (domain == std::string_view::npos || text.size() < domain + 8) return false;
  return hexadecimal(text.substr(0, domain), 1, 8) &&
         hexadecimal(text.substr(domain + 1, 2), 2, 2) && text[domain + 3] == ':' &&
         hexadecimal(text.substr(domain + 4, 2), 2, 2) && text[domain + 6] == '.' &&
         hexadecimal(text.substr(domain + 7), 1, 1);
}

// A finite decimal number that is not negative.
Status real_number(const XmlFile& file, pugi::xml_node node, const char* attribute, double most,
                   double* value) {
  const std::string_view text = node.attribute(attribute).value();
  *value = 0;
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc() || end != text.data() + text.size() || !(*value >= 0 && *value <= most))
    return bad(file, node, attribute, fmt::format("a number from 0 to {}", most));
  return {};
}

}  // namespace

Status read_busid(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  std::string* busid) {
  BITRAIL_TRY(required(file, node, attribute, busid));
  if (!is_busid(*busid)) return bad(file, node, attribute, "a PCI address like 0000:4f:00.0");
  std::ranges::transform(*busid, busid->begin(), [](unsigned char c) { return std::tolower(c); });
  return {};
}

Status read_class(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  uint32_t* class_code) {
  std::string_view text = node.attribute(attribute).value();
  *class_code = 0;
  if (text.empty()) return {};
  if (!text.starts_with("0x") || !hexadecimal(text.substr(2), 6, 6))
    return bad(file, node, attribute, "a PCI class like 0x030200");
  text.remove_prefix(2);
  std::from_chars(text.data(), text.data() + text.size(), *class_code, 16);
  return {};
}

Status read_link(const XmlFile& file, pugi::xml_node node, double* bandwidth) {
  int64_t width = 0;
  BITRAIL_TRY(whole_number(file, node, "link_width", 0, 255, 0, &width));
  const std::string_view text = node.attribute("link_speed").value();
  double transfers = 0;
  if (!text.empty() && !text.starts_with("Unknown")) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), transfers);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    if (error != std::errc() || !unit.starts_with(" GT/s") || transfers <= 0)
      return bad(file, node, "link_speed", "a PCI speed like 16.0 GT/s PCIe");
  }
  *bandwidth = pci_bandwidth(transfers, static_cast<int>(width));
  if (*bandwidth == 0)
    return bad(file, node, "link_speed", "a speed that PCI has (2.5, 5, 8, 16, 32, 64 GT/s)");
  return {};
}

Status read_cpu(const XmlFile& file, pugi::xml_node node, Numa* numa) {
  std::string text;
  int64_t id = 0, family = 0, model = 0;
  BITRAIL_TRY(required(file, node, "numaid", &text));
  BITRAIL_TRY(whole_number(file, node, "numaid", -1, 65'535, -1, &id));
  BITRAIL_TRY(whole_number(file, node, "familyid", 0, 65'535, -1, &family));
  BITRAIL_TRY(whole_number(file, node, "modelid", 0, 65'535, -1, &model));
  numa->id = static_cast<int>(id);
  numa->family = static_cast<int>(family);
  numa->model = static_cast<int>(model);
  BITRAIL_TRY(plain_text(file, node, "affinity", &numa->cpus));
  BITRAIL_TRY(plain_text(file, node, "arch", &numa->arch));
  return plain_text(file, node, "vendor", &numa->vendor);
}

Status read_net(const XmlFile& file, pugi::xml_node node, Port* port) {
  int64_t number = 0;
  BITRAIL_TRY(required(file, node, "name", &port->name));
  BITRAIL_TRY(whole_number(file, node, "port", 0, 65'535, 0, &number));
  BITRAIL_TRY(real_number(file, node, "speed", 1e8, &port->mbps));
  BITRAIL_TRY(any_number(file, node, "guid", &port->guid));
  port->port = static_cast<int>(number);
  return {};
}

Status read_gpu(const XmlFile& file, pugi::xml_node node, Gpu* gpu) {
  int64_t dev = 0, rank = 0, sm = 0;
  BITRAIL_TRY(whole_number(file, node, "dev", 0, 65'535, -1, &dev));
  BITRAIL_TRY(whole_number(file, node, "rank", -1, 1 << 24, -1, &rank));
  BITRAIL_TRY(whole_number(file, node, "sm", 0, 1000, 0, &sm));
  if (dev >= 0) gpu->name = fmt::format("{}{}", node.name(), dev);
  gpu->rank = static_cast<int>(rank);
  gpu->sm = static_cast<int>(sm);
  for (pugi::xml_node c2c : node.children("c2c")) {
    int64_t count = 0;
    double bandwidth = 0;
    BITRAIL_TRY(whole_number(file, c2c, "count", 1, 1024, 1, &count));
    BITRAIL_TRY(real_number(file, c2c, "bw", 1e9, &bandwidth));
    gpu->c2c_bandwidth += bandwidth * static_cast<double>(count) / 1000;
  }
  return {};
}

}  // namespace bitrail::topology
