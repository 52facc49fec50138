// What the verbs transport reads from peers: the greeting of the side channel, the entries of a
// ring, and immediates. None may read outside its bytes or take nonsense.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/transport/verbs/message.h"
#include "runtime/transport/verbs/ring.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail;                    // NOLINT(google-build-using-namespace)
using namespace bitrail::transport::verbs;  // NOLINT

void require(bool condition) {
  if (!condition) std::abort();
}

void fuzz_greeting(const std::vector<uint8_t>& blob) {
  Greeting greeting;
  if (!decode_greeting(blob, &greeting).ok()) return;
  require(greeting.queue_pairs.size() <= kMaxQueuePairs && greeting.reason.size() <= blob.size());
  if (greeting.refused != 0) return;
  require(greeting.ring_units <= kMaxRingUnits && !greeting.queue_pairs.empty());
  // What was understood is what is written again.
  Greeting again;
  require(decode_greeting(encode_greeting(greeting), &again).ok());
  require(again.nonce == greeting.nonce && again.ring_address == greeting.ring_address &&
          again.queue_pairs.size() == greeting.queue_pairs.size());
}

void fuzz_entry(const uint8_t* data, size_t size) {
  Entry entry;
  if (!parse_entry(data, size, &entry)) return;
  require(entry.units >= 1 && (entry.units - 1) * size_t{kUnitBytes} < size);
  if (entry.payload != nullptr) require(entry.payload + entry.bytes <= data + size);
  std::vector<uint8_t> bytes(size_t{entry.units} * kUnitBytes);
  const size_t length = encode_entry(entry, bytes.data());
  require(length <= size && memcmp(bytes.data(), data, length) == 0);
}

// A ring that somebody else writes to, and immediates of any kind.
void fuzz_ring(const uint8_t* data, size_t size) {
  constexpr uint32_t kUnits = 16;
  std::vector<uint8_t> memory(kUnits * kUnitBytes);
  if (size > 0) memcpy(memory.data(), data, std::min(size, memory.size()));
  InRing ring;
  ring.open(memory.data(), kUnits);
  for (size_t at = 0; at + 4 <= size; at += 4) {
    uint32_t bits = 0;
    memcpy(&bits, data + at, sizeof(bits));
    Immediate immediate{};
    if (!parse_immediate(bits, &immediate)) continue;
    require(encode_immediate(immediate) == bits);
    if (immediate.signal != Signal::entry) continue;
    Entry entry;
    const uint32_t before = ring.consumed();
    if (ring.take(immediate.value % (2 * kUnits), &entry)) {
      require(ring.consumed() - before <= 2 * kUnits);
    } else {
      require(ring.consumed() == before);
    }
  }
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  Greeting greeting;
  greeting.ring_units = 64;
  greeting.ring_address = 4096;
  greeting.eager_bytes = 512;
  greeting.queue_pairs.resize(2);
  for (QueuePairFacts& facts : greeting.queue_pairs) {
    facts.mtu = 3;
    facts.speed_mbps = 100'000;
  }
  Entry eager, clear;
  const std::vector<uint8_t> payload(100, 7);
  eager.payload = payload.data();
  eager.bytes = payload.size();
  clear.kind = EntryKind::clear;
  std::vector<uint8_t> first(256), second(64);
  encode_entry(eager, first.data());
  encode_entry(clear, second.data());
  return {encode_greeting(greeting), first, second};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_greeting({data, data + size});
  fuzz_entry(data, size);
  fuzz_ring(data, size);
  return 0;
}
