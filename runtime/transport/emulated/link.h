// The model of a slow link: one network card per node, full duplex, each direction a queue that all
// peers (and all ranks of the node) share, and a delay on the way.
//
//   start     = max(own card's tx_next, time the data was queued)
//   tx_next   = start + wire bytes / rate
//   arrival   = max(start + delay, peer card's rx_next)       the first byte, cut through
//   delivered = arrival + wire bytes / rate = the new rx_next
//
// Time is virtual: data queued at t may start at t even when somebody looks only later, so sleeping
// costs no bandwidth. A quantum is reserved only when the card is free, so that ranks that share a
// card take turns, and one rank serves its peers round robin.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bitrail::transport::emulated {

// The unit of sharing (payload bytes). Larger: a small message waits longer behind another peer's
// data. Smaller: more reservations.
constexpr size_t kQuantumBytes = 32 << 10;

struct Card {
  std::atomic<int64_t> tx_next_ns{0};
  std::atomic<int64_t> rx_next_ns{0};
};

struct Shape {
  double ns_per_byte = 0;
  int64_t delay_ns = 0;  // one way
};

Shape make_shape(double mbps, double delay_us);

// What a payload takes on Ethernet: Ethernet, IP and TCP headers of every 1,448 bytes, and the
// transport's own header once a message.
size_t wire_bytes(size_t payload, bool first_of_message);

// Reserves both cards for one quantum. False: the own card is busy until *when_ns. True: the
// quantum's last byte has arrived at *when_ns.
bool reserve(const Shape& shape, Card* mine, Card* peers, size_t bytes, int64_t queued_ns,
             int64_t now_ns, int64_t* when_ns);

}  // namespace bitrail::transport::emulated
