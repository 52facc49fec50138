// Positions: how chunks and pieces become elements, and elements bytes. The only place that knows.
#include "runtime/schedule/schedule.h"

#include <algorithm>
#include <string_view>

namespace bitrail::schedule {

const OperationKind kSend = {"send", Meaning::send};
const OperationKind kRecv = {"recv", Meaning::recv};
const OperationKind kCopy = {"copy", Meaning::copy};
const OperationKind kReduce = {"reduce", Meaning::reduce};
const OperationKind kCall = {"call", Meaning::call};
const OperationKind kScan = {"scan", Meaning::none};
const OperationKind kScale = {"scale", Meaning::none};
const OperationKind kVerdict = {"verdict", Meaning::none};
const OperationKind kPack = {"pack", Meaning::pack};
const OperationKind kSign = {"sign", Meaning::pack};
const OperationKind kResidual = {"residual", Meaning::none};
const OperationKind kUnpackAverage = {"unpack_average", Meaning::reduce};
const OperationKind kServerScale = {"server_scale", Meaning::none};
const OperationKind kServerPack = {"server_pack", Meaning::pack};
const OperationKind kServerSign = {"server_sign", Meaning::pack};
const OperationKind kServerResidual = {"server_residual", Meaning::none};
const OperationKind kUnpack = {"unpack", Meaning::unpack};
const OperationKind kTakeAverage = {"take_average", Meaning::reduce};
const OperationKind kLoad = {"load", Meaning::copy};
const OperationKind kNodeSum = {"node_sum", Meaning::reduce};
const OperationKind kJoin = {"join", Meaning::none};

namespace {

constexpr uint64_t kSlotAlignment = 64;  // bytes: a cache line, and enough for every SIMD load

uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
uint64_t round_up(uint64_t a, uint64_t b) { return b <= 1 ? a : ceil_div(a, b) * b; }

uint64_t count_of(const Buffer& buffer, const Binding& binding) {
  return buffer.symbol < binding.counts.size() ? binding.counts[buffer.symbol] : 0;
}

// The quanta cut data; the other symbols are cut evenly.
uint64_t chunk_length(uint64_t n, uint32_t chunks, uint64_t quantum) {
  return chunks <= 1 ? n : round_up(ceil_div(n, chunks), quantum);
}
uint64_t piece_length(uint64_t chunk, uint32_t pieces, uint64_t quantum) {
  return pieces <= 1 ? chunk : round_up(ceil_div(chunk, pieces), quantum);
}

// First byte of element a; for the end of a range also the byte after its last one.
uint64_t position(const Unit& unit, uint64_t a, const Binding& binding) {
  const uint64_t bits = unit.bits ? unit.bits : binding.data_bits;
  uint64_t bytes = ceil_div(bits * a, 8);
  if (unit.group_bytes && binding.group) bytes += unit.group_bytes * ceil_div(a, binding.group);
  return bytes;
}

}  // namespace

Bounds global_bounds(const Schedule& schedule, const Range& range, const Binding& binding) {
  const Buffer& buffer = schedule.buffers[range.buffer];
  const uint64_t n = count_of(buffer, binding);
  const uint64_t length = chunk_length(n, range.chunks, binding.quantum);
  const uint64_t begin = std::min(length * range.chunk, n);
  const uint64_t end = std::min(begin + length * range.span, n);
  if (range.pieces <= 1) return {begin, end};
  const uint64_t piece = piece_length(length, range.pieces, binding.piece_quantum);
  return {std::min(begin + piece * range.piece, end),
          std::min(begin + piece * (range.piece + 1), end)};
}

Bounds element_bounds(const Schedule& schedule, const Range& range, const Binding& binding) {
  const Buffer& buffer = schedule.buffers[range.buffer];
  Bounds bounds = global_bounds(schedule, range, binding);
  uint64_t origin = 0;
  if (buffer.pieces > 1) {
    origin = bounds.begin;
  } else if (buffer.fraction > 1) {
    const uint64_t n = count_of(buffer, binding);
    origin = std::min(chunk_length(n, range.chunks, binding.quantum) * range.chunk, n);
  }
  return {bounds.begin - origin, bounds.end - origin};
}

Bounds byte_bounds(const Schedule& schedule, const Range& range, const Binding& binding) {
  const Buffer& buffer = schedule.buffers[range.buffer];
  const Bounds elements = element_bounds(schedule, range, binding);
  const uint64_t slot = slot_bytes(buffer, binding) * range.slot;
  return {slot + position(buffer.unit, elements.begin, binding),
          slot + position(buffer.unit, elements.end, binding)};
}

uint64_t slot_elements(const Buffer& buffer, const Binding& binding) {
  const uint64_t chunk = chunk_length(count_of(buffer, binding), buffer.fraction, binding.quantum);
  return piece_length(chunk, buffer.pieces, binding.piece_quantum);
}

uint64_t slot_bytes(const Buffer& buffer, const Binding& binding) {
  const uint64_t bytes = position(buffer.unit, slot_elements(buffer, binding), binding);
  return buffer.role == Role::scratch ? round_up(bytes, kSlotAlignment) : bytes;
}

uint64_t buffer_bytes(const Buffer& buffer, const Binding& binding) {
  return slot_bytes(buffer, binding) * buffer.slots;
}

namespace {

// FNV-1a, 64 bits.
struct Hasher {
  uint64_t state = 0xcbf29ce484222325u;
  void bytes(const void* data, size_t n) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < n; i++) state = (state ^ p[i]) * 0x100000001b3u;
  }
  void number(uint64_t v) { bytes(&v, sizeof v); }
  void text(std::string_view v) {
    number(v.size());
    bytes(v.data(), v.size());
  }
  void ranges(const std::vector<Range>& v) {
    number(v.size());
    for (const Range& r : v)
      for (uint32_t field : {r.buffer, r.slot, r.chunk, r.chunks, r.piece, r.pieces, r.span})
        number(field);
  }
};

}  // namespace

uint64_t hash(const Schedule& schedule) {
  Hasher h;
  h.number(static_cast<uint64_t>(schedule.rank));
  h.number(static_cast<uint64_t>(schedule.world_size));
  h.number(schedule.buffers.size());
  for (const Buffer& b : schedule.buffers) {
    h.number(static_cast<uint64_t>(b.role));
    for (uint32_t field :
         {b.unit.bits, b.unit.group_bytes, b.symbol, b.slots, b.fraction, b.pieces})
      h.number(field);
  }
  h.number(schedule.operations.size());
  for (const Operation& o : schedule.operations) {
    h.text(o.kind ? o.kind->name : "");
    h.number(static_cast<uint64_t>(o.peer));
    h.number(o.message);
    h.number(o.lane);
    h.ranges(o.reads);
    h.ranges(o.writes);
    h.number(o.after.size());
    for (OperationId id : o.after) h.number(id);
    h.number(o.attributes.size());
    for (int64_t a : o.attributes) h.number(static_cast<uint64_t>(a));
    h.number(o.nested ? hash(*o.nested) : 0);
    h.number(o.nested_buffers.size());
    for (BufferId id : o.nested_buffers) h.number(id);
  }
  return h.state;
}

}  // namespace bitrail::schedule
