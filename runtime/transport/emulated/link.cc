#include "runtime/transport/emulated/link.h"

#include <algorithm>

namespace bitrail::transport::emulated {
namespace {

constexpr size_t kSegmentPayload = 1448;          // 1500 - 20 (IP) - 32 (TCP with timestamps)
constexpr size_t kSegmentHeaders = 14 + 20 + 32;  // as `tc` counts: without preamble and CRC
constexpr size_t kMessageHeader = 40;             // UCX's and ours

}  // namespace

Shape make_shape(double mbps, double delay_us) {
  Shape shape;
  if (mbps > 0) shape.ns_per_byte = 8e3 / mbps;
  shape.delay_ns = static_cast<int64_t>(delay_us * 1e3);
  return shape;
}

size_t wire_bytes(size_t payload, bool first_of_message) {
  const size_t bytes = payload + (first_of_message ? kMessageHeader : 0);
  const size_t segments = (bytes + kSegmentPayload - 1) / kSegmentPayload;
  return bytes + segments * kSegmentHeaders;
}

bool reserve(const Shape& shape, Card* mine, Card* peers, size_t bytes, int64_t queued_ns,
             int64_t now_ns, int64_t* when_ns) {
  const auto duration = static_cast<int64_t>(static_cast<double>(bytes) * shape.ns_per_byte);
  int64_t busy_until = mine->tx_next_ns.load(std::memory_order_relaxed);
  int64_t start = 0;
  do {
    if (busy_until > now_ns) {
      *when_ns = busy_until;
      return false;
    }
    start = std::max(busy_until, queued_ns);
  } while (!mine->tx_next_ns.compare_exchange_weak(busy_until, start + duration,
                                                   std::memory_order_relaxed));
  int64_t receiving_until = peers->rx_next_ns.load(std::memory_order_relaxed);
  int64_t delivered = 0;
  do {
    delivered = std::max(start + shape.delay_ns, receiving_until) + duration;
  } while (!peers->rx_next_ns.compare_exchange_weak(receiving_until, delivered,
                                                    std::memory_order_relaxed));
  *when_ns = delivered;
  return true;
}

}  // namespace bitrail::transport::emulated
