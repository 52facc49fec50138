#include "runtime/transport/verbs/select.h"

#include <algorithm>
#include <charconv>

namespace bitrail::transport::verbs {
namespace {

constexpr size_t kMaxText = 4096;  // far beyond 40 names
constexpr int kMaxPort = 254;

bool name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

Status refused(std::string_view part, const char* why) {
  return failure(BITRAIL_ERR_CONFIG,
                 "BITRAIL_IB_HCA: '{}' {}; a list is [^][=]name[:port],..., for example "
                 "=mlx5_0:1,mlx5_3",
                 part.substr(0, 64), why);
}

Status parse_name(std::string_view part, HcaName* parsed) {
  const size_t colon = part.find(':');
  const std::string_view name = part.substr(0, colon);
  if (name.empty()) return refused(part, "has no device name");
  if (name.front() == '^' || name.front() == '=') {
    return refused(part, "has a sign that belongs in front of the whole list");
  }
  if (!std::all_of(name.begin(), name.end(), name_character)) {
    return refused(part, "is not a device name");
  }
  parsed->name = name;
  parsed->port = 0;
  if (colon == std::string_view::npos) return {};
  const std::string_view port = part.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(port.data(), port.data() + port.size(), parsed->port, 10);
  if (error != std::errc() || end != port.data() + port.size() || parsed->port < 1 ||
      parsed->port > kMaxPort) {
    return refused(part, "has no port number from 1 to 254 behind the colon");
  }
  return {};
}

bool matches(const HcaList& list, const HcaName& name, std::string_view device) {
  return list.exact ? device == name.name : device.starts_with(name.name);
}

}  // namespace

Status parse_hca_list(std::string_view text, HcaList* list) {
  *list = {};
  if (text.empty()) return {};
  if (text.size() > kMaxText) return refused(text, "... is longer than 4096 characters");
  HcaList parsed;
  std::string_view rest = text;
  parsed.exclude = rest.starts_with('^');
  if (parsed.exclude) rest.remove_prefix(1);
  parsed.exact = rest.starts_with('=');
  if (parsed.exact) rest.remove_prefix(1);
  for (size_t start = 0; start <= rest.size();) {
    const size_t end = std::min(rest.find(',', start), rest.size());
    const std::string_view part = rest.substr(start, end - start);
    start = end + 1;
    if (part.empty()) continue;  // as NCCL: "a,,b" and a comma at the end
    HcaName name;
    BITRAIL_TRY(parse_name(part, &name));
    parsed.names.push_back(std::move(name));
  }
  if (parsed.names.empty()) return refused(text, "names no device");
  *list = std::move(parsed);
  return {};
}

bool selects(const HcaList& list, std::string_view device, int port) {
  if (list.names.empty()) return true;
  const bool listed = std::any_of(list.names.begin(), list.names.end(), [&](const HcaName& name) {
    return matches(list, name, device) && (name.port == 0 || name.port == port);
  });
  return listed != list.exclude;
}

bool may_select(const HcaList& list, std::string_view device) {
  if (list.names.empty()) return true;
  const bool found = std::any_of(list.names.begin(), list.names.end(), [&](const HcaName& name) {
    return matches(list, name, device) && (!list.exclude || name.port == 0);
  });
  return found != list.exclude;
}

std::string hca_list_text(const HcaList& list) {
  std::string text = list.exclude ? "^" : "";
  if (list.exact) text += "=";
  for (const HcaName& name : list.names) {
    if (&name != list.names.data()) text += ",";
    text += name.name;
    if (name.port != 0) text += fmt::format(":{}", name.port);
  }
  return text;
}

}  // namespace bitrail::transport::verbs
