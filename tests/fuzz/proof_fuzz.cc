// The proof of the job secret, fed with a stranger's bytes in pieces: it must keep to its bounds
// and never come to believe the stranger.
#include "runtime/bootstrap/proof.h"

#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/seeds.h"

namespace {

using bitrail::bootstrap::Proof;
using bitrail::bootstrap::Side;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  Proof connector(Side::connector, "other", "job", 1), acceptor(Side::acceptor, "other", "job", 0);
  std::vector<std::vector<uint8_t>> seeds = {connector.take_output(), acceptor.take_output()};
  size_t used = 0;
  (void)connector.feed(seeds[1], &used);
  for (const uint8_t byte : connector.take_output()) seeds[0].push_back(byte);
  // The first byte is the size of the pieces.
  for (std::vector<uint8_t>& seed : seeds) seed.insert(seed.begin(), 40);
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = size_t{data[0]} + 1;
  for (const Side side : {Side::connector, Side::acceptor}) {
    Proof proof(side, "secret", "job", 3);
    std::span<const uint8_t> left(data + 1, size - 1);
    size_t answered = proof.take_output().size();
    while (!left.empty()) {
      size_t used = 0;
      const auto part = left.first(std::min(piece, left.size()));
      const bool ok = proof.feed(part, &used).ok();
      require(used <= part.size());
      answered += proof.take_output().size();
      if (!ok) break;
      left = left.subspan(used);
    }
    require(!proof.done() && proof.peer_rank() == -1 && proof.session().empty());
    require(answered <= 3 * bitrail::bootstrap::kProofMaxBuffered);
  }
  return 0;
}
