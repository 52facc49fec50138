#include "runtime/transport/verbs/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/table.h"

namespace bitrail::transport::verbs {
namespace {

constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kMaxListed = 12;

Status no_range(std::string_view text) {
  return failure(BITRAIL_ERR_CONFIG,
                 "BITRAIL_IB_ADDRESS_RANGE='{}' is no range of addresses like 10.0.0.0/8 or "
                 "2001:db8::/32",
                 text.substr(0, 64));
}

// Why the entry is not for the choice; null: it is.
const char* unfit(const GidEntry& entry, const AddressRange& range) {
  if (is_zero(entry.gid)) return "empty";
  if (is_link_local(entry.gid)) return "link-local";
  if (entry.version == 0) return "of another network namespace";
  if (!contains(range, entry.gid)) return "outside BITRAIL_IB_ADDRESS_RANGE";
  return nullptr;
}

std::string list(const std::vector<GidEntry>& entries, const AddressRange& range) {
  std::string text;
  for (size_t i = 0; i < entries.size() && i < kMaxListed; i++) {
    const GidEntry& entry = entries[i];
    const char* why = unfit(entry, range);
    text += fmt::format("{}{} at {} ({})", i == 0 ? "" : ", ", gid_text(entry.gid), entry.index,
                        why == nullptr ? "fit" : why);
  }
  if (entries.size() > kMaxListed) text += ", ...";
  return text.empty() ? "an empty table" : text;
}

Status fixed(const std::string& port, const std::vector<GidEntry>& entries, int64_t index,
             GidEntry* chosen) {
  for (const GidEntry& entry : entries) {
    if (entry.index != index || is_zero(entry.gid)) continue;
    *chosen = entry;
    return {};
  }
  return failure(BITRAIL_ERR_CONFIG, "{} has no GID at index {} (BITRAIL_IB_GID_INDEX); it has {}",
                 port, index, list(entries, {}));
}

}  // namespace

Status parse_range(std::string_view text, AddressRange* range) {
  *range = {};
  if (text.empty()) return {};
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash > 64 || text.find('\0') < slash) {
    return no_range(text);
  }
  const std::string address(text.substr(0, slash));
  const std::string_view tail = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), bits, 10);
  if (tail.empty() || error != std::errc() || end != tail.data() + tail.size() || bits < 0) {
    return no_range(text);
  }
  AddressRange parsed;
  if (inet_pton(AF_INET, address.c_str(), parsed.bytes + 12) == 1) {
    if (bits > 32) return no_range(text);
    memcpy(parsed.bytes, kMapped, sizeof(kMapped));
    parsed.bits = 96 + bits;
  } else {
    if (bits > 128 || inet_pton(AF_INET6, address.c_str(), parsed.bytes) != 1) {
      return no_range(text);
    }
    parsed.bits = bits;
  }
  *range = parsed;
  return {};
}

bool contains(const AddressRange& range, const ibv_gid& gid) {
  const int whole = range.bits / 8, rest = range.bits % 8;
  if (memcmp(range.bytes, gid.raw, whole) != 0) return false;
  if (rest == 0) return true;
  const auto mask = static_cast<uint8_t>(0xff << (8 - rest));
  return ((range.bytes[whole] ^ gid.raw[whole]) & mask) == 0;
}

bool is_zero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](uint8_t b) { return b == 0; });
}

bool is_link_local(const ibv_gid& gid) {
  if (is_ipv4(gid)) return gid.raw[12] == 169 && gid.raw[13] == 254;
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

bool is_ipv4(const ibv_gid& gid) { return memcmp(gid.raw, kMapped, sizeof(kMapped)) == 0; }

std::string gid_text(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(gid)) {
    inet_ntop(AF_INET, gid.raw + 12, text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  }
  return text;
}

Status read_gids(ibv_context* context, int port, int table_size, std::vector<GidEntry>* entries) {
  entries->clear();
  const auto number = static_cast<uint8_t>(port);
  for (int index = 0; index < table_size; index++) {
    GidEntry entry;
    entry.index = index;
    if (table().query_gid(context, number, index, &entry.gid) != 0) {
      return failure(BITRAIL_ERR_SYSTEM, "{}:{}: {}", table().get_device_name(context->device),
                     port, errno_text("ibv_query_gid", errno));
    }
    if (is_zero(entry.gid)) continue;
    if (table().query_gid_version(context, number, index, &entry.version) != 0) entry.version = 0;
    entries->push_back(entry);
  }
  return {};
}

Status choose_gid(const std::string& port, bool roce, const std::vector<GidEntry>& entries,
                  const IbOptions& options, GidEntry* chosen) {
  if (options.gid_index >= 0) return fixed(port, entries, options.gid_index, chosen);
  if (!roce) {
    if (!entries.empty()) {
      *chosen = entries.front();
      return {};
    }
    return failure(BITRAIL_ERR_SYSTEM, "{} has no GID; is a subnet manager running?", port);
  }
  AddressRange range;
  BITRAIL_TRY(parse_range(options.address_range, &range));
  const bool want_ipv4 = options.address_family != "ipv6";
  int best = -1;
  for (const GidEntry& entry : entries) {
    if (unfit(entry, range) != nullptr) continue;
    const int worth =
        (is_ipv4(entry.gid) == want_ipv4 ? 2 : 0) + (entry.version == options.roce_version ? 1 : 0);
    if (worth <= best) continue;
    best = worth;
    *chosen = entry;
  }
  if (best >= 0) return {};
  return failure(BITRAIL_ERR_SYSTEM,
                 "{} has no GID to use: it has {}; give the interface an address, or choose by "
                 "BITRAIL_IB_GID_INDEX",
                 port, list(entries, range));
}

}  // namespace bitrail::transport::verbs
