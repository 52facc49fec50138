#include "runtime/transport/verbs/message.h"

#include <bit>
#include <cstring>

#include "runtime/transport/handle.h"

namespace bitrail::transport::verbs {
namespace {

constexpr uint32_t kMagic = 0x47765442;  // "BTvG"

struct Header {
  uint32_t position, consumed;
  uint16_t kind, zero;
  uint32_t id;
  uint64_t tag, bytes;
  uint32_t cookie, extra;  // extra: the send's id, or a record's mask
};
static_assert(sizeof(Header) == kEagerHeaderBytes);

struct ClearLayout {
  Header header;
  uint64_t address;
  uint32_t rkeys[kMaxRails];
};
static_assert(sizeof(ClearLayout) == kEntryHeaderBytes);

struct GreetingLayout {
  uint32_t magic;
  uint16_t version, kind;
  uint64_t nonce, ring_address;
  uint32_t ring_rkey, ring_units, eager_bytes, refused, queue_pairs, reason_bytes;
};
static_assert(sizeof(GreetingLayout) == 48);

struct FactsLayout {
  uint32_t number, psn;
  uint8_t gid[16];
  uint16_t lid;
  uint8_t mtu, roce, rail, reads;
  uint16_t zero;
  uint32_t speed_mbps;
};
static_assert(sizeof(FactsLayout) == 36);

constexpr uint32_t kControl = 1U << 31, kCredit = 1U << 30, kWord = 1U << 29;

bool has_address(EntryKind kind) { return kind == EntryKind::clear || kind == EntryKind::grant; }

}  // namespace

// 0: data. 10: entry, or with bit 29 one of the words. 11: credit.
uint32_t encode_immediate(Immediate immediate) {
  switch (immediate.signal) {
    case Signal::data:
      return immediate.value & ~kControl;
    case Signal::entry:
      return kControl | (immediate.value & (kWord - 1));
    case Signal::credit:
      return kControl | kCredit | (immediate.value & (kCredit - 1));
    case Signal::hello:
      return kControl | kWord;
    case Signal::goodbye:
      return kControl | kWord | 1;
  }
  return kControl | kWord | 2;
}

bool parse_immediate(uint32_t bits, Immediate* immediate) {
  if ((bits & kControl) == 0) {
    *immediate = {Signal::data, bits};
  } else if ((bits & kCredit) != 0) {
    *immediate = {Signal::credit, bits & (kCredit - 1)};
  } else if ((bits & kWord) == 0) {
    *immediate = {Signal::entry, bits & (kWord - 1)};
  } else {
    const uint32_t word = bits & (kWord - 1);
    *immediate = {word == 0 ? Signal::hello : Signal::goodbye, 0};
    return word <= 1;
  }
  return true;
}

size_t encode_entry(const Entry& entry, uint8_t* to) {
  const Header header{.position = entry.position,
                      .consumed = entry.consumed,
                      .kind = static_cast<uint16_t>(entry.kind),
                      .zero = 0,
                      .id = entry.id,
                      .tag = entry.tag,
                      .bytes = entry.bytes,
                      .cookie = entry.cookie,
                      .extra = entry.kind == EntryKind::record ? entry.mask : entry.send_id};
  memcpy(to, &header, sizeof(header));
  if (entry.kind == EntryKind::eager) {
    if (entry.bytes > 0) memcpy(to + sizeof(header), entry.payload, entry.bytes);
    return sizeof(header) + entry.bytes;
  }
  if (!has_address(entry.kind)) return sizeof(header);
  ClearLayout layout{.header = header, .address = entry.address, .rkeys = {}};
  memcpy(layout.rkeys, entry.rkeys, sizeof(layout.rkeys));
  memcpy(to, &layout, sizeof(layout));
  return sizeof(layout);
}

bool parse_entry(const uint8_t* from, size_t available, Entry* entry) {
  Header header;
  if (available < sizeof(header)) return false;
  memcpy(&header, from, sizeof(header));
  if (header.kind < static_cast<uint16_t>(EntryKind::eager) ||
      header.kind > static_cast<uint16_t>(EntryKind::refuse) || header.zero != 0 ||
      header.bytes > kMaxMessageBytes) {
    return false;
  }
  *entry = {};
  entry->kind = static_cast<EntryKind>(header.kind);
  entry->position = header.position;
  entry->consumed = header.consumed;
  entry->id = header.id;
  entry->tag = header.tag;
  entry->bytes = header.bytes;
  entry->cookie = header.cookie;
  (entry->kind == EntryKind::record ? entry->mask : entry->send_id) = header.extra;
  size_t length = sizeof(header);
  if (entry->kind == EntryKind::eager) {
    if (header.bytes > available - length) return false;
    entry->payload = from + length;
    length += header.bytes;
  } else if (has_address(entry->kind)) {
    ClearLayout layout;
    length = sizeof(layout);
    if (available < length) return false;
    memcpy(&layout, from, length);
    entry->address = layout.address;
    memcpy(entry->rkeys, layout.rkeys, sizeof(layout.rkeys));
  }
  entry->units = entry_units(length);
  return true;
}

std::vector<uint8_t> encode_greeting(const Greeting& greeting) {
  const GreetingLayout layout{.magic = kMagic,
                              .version = kProtocolVersion,
                              .kind = static_cast<uint16_t>(Kind::verbs),
                              .nonce = greeting.nonce,
                              .ring_address = greeting.ring_address,
                              .ring_rkey = greeting.ring_rkey,
                              .ring_units = greeting.ring_units,
                              .eager_bytes = greeting.eager_bytes,
                              .refused = greeting.refused,
                              .queue_pairs = static_cast<uint32_t>(greeting.queue_pairs.size()),
                              .reason_bytes = static_cast<uint32_t>(greeting.reason.size())};
  std::vector<uint8_t> bytes(sizeof(layout));
  memcpy(bytes.data(), &layout, sizeof(layout));
  for (const QueuePairFacts& facts : greeting.queue_pairs) {
    FactsLayout one{.number = facts.number,
                    .psn = facts.psn,
                    .gid = {},
                    .lid = facts.lid,
                    .mtu = facts.mtu,
                    .roce = facts.roce,
                    .rail = facts.rail,
                    .reads = facts.reads,
                    .zero = 0,
                    .speed_mbps = facts.speed_mbps};
    memcpy(one.gid, facts.gid, sizeof(one.gid));
    const auto* begin = reinterpret_cast<const uint8_t*>(&one);
    bytes.insert(bytes.end(), begin, begin + sizeof(one));
  }
  bytes.insert(bytes.end(), greeting.reason.begin(), greeting.reason.end());
  return bytes;
}

namespace {

Status malformed(const char* what) {
  return failure(BITRAIL_ERR_PROTOCOL, "the set-up message's {} makes no sense", what);
}

Status decode_facts(const uint8_t* from, size_t index, QueuePairFacts* facts) {
  FactsLayout one;
  memcpy(&one, from + index * sizeof(one), sizeof(one));
  if (one.number >= 1U << 24 || one.psn >= 1U << 24 || one.mtu < 1 || one.mtu > 5 || one.roce > 1 ||
      one.rail >= kMaxRails || one.speed_mbps == 0) {
    return malformed("queue pair");
  }
  *facts = {.number = one.number,
            .psn = one.psn,
            .gid = {},
            .lid = one.lid,
            .mtu = one.mtu,
            .roce = one.roce,
            .rail = one.rail,
            .reads = one.reads,
            .speed_mbps = one.speed_mbps};
  memcpy(facts->gid, one.gid, sizeof(one.gid));
  return {};
}

}  // namespace

Status decode_greeting(const std::vector<uint8_t>& bytes, Greeting* greeting) {
  GreetingLayout layout;
  if (bytes.size() < sizeof(layout)) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message of {} bytes is too short", bytes.size());
  }
  memcpy(&layout, bytes.data(), sizeof(layout));
  if (layout.magic != kMagic || layout.kind != static_cast<uint16_t>(Kind::verbs)) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message is not of transport verbs");
  }
  if (layout.version != kProtocolVersion) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "the peer speaks transport protocol version {}, this rank version {}; all ranks "
                   "need the same BitRail",
                   layout.version, kProtocolVersion);
  }
  if (layout.queue_pairs > kMaxQueuePairs ||
      layout.reason_bytes !=
          bytes.size() - sizeof(layout) -
              std::min(layout.queue_pairs * sizeof(FactsLayout), bytes.size() - sizeof(layout))) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message's length is inconsistent");
  }
  *greeting = {};
  greeting->nonce = layout.nonce;
  greeting->refused = layout.refused;
  const uint8_t* at = bytes.data() + sizeof(layout);
  const uint8_t* reason = bytes.data() + bytes.size() - layout.reason_bytes;
  if (static_cast<size_t>(reason - at) != layout.queue_pairs * sizeof(FactsLayout)) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message's length is inconsistent");
  }
  greeting->reason.assign(reason, bytes.data() + bytes.size());
  if (layout.refused != 0) return {};  // the rest says nothing
  greeting->ring_address = layout.ring_address;
  greeting->ring_rkey = layout.ring_rkey;
  greeting->ring_units = layout.ring_units;
  greeting->eager_bytes = layout.eager_bytes;
  if (layout.ring_units < 8 || layout.ring_units > kMaxRingUnits ||
      !std::has_single_bit(layout.ring_units) ||
      layout.ring_address > UINT64_MAX - uint64_t{layout.ring_units} * kUnitBytes) {
    return malformed("ring");
  }
  // So that a few always fit.
  if (uint64_t{layout.eager_bytes} + kEagerHeaderBytes >
      uint64_t{layout.ring_units} * kUnitBytes / 4) {
    return malformed("eager limit");
  }
  if (layout.queue_pairs == 0) return malformed("number of queue pairs");
  greeting->queue_pairs.resize(layout.queue_pairs);
  for (size_t i = 0; i < layout.queue_pairs; i++) {
    BITRAIL_TRY(decode_facts(at, i, &greeting->queue_pairs[i]));
  }
  return {};
}

}  // namespace bitrail::transport::verbs
