// The bootstrap's frames and what is in them. A frame that parses must be within its bounds, and
// one that decodes must encode to the same bytes.
#include "runtime/bootstrap/frame.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/bootstrap/exchange.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::bootstrap;

constexpr int kSize = 12;
using Bytes = std::vector<uint8_t>;

void require(bool condition) {
  if (!condition) std::abort();
}

void append(Bytes* out, const Bytes& more) { out->insert(out->end(), more.begin(), more.end()); }

void check(const Frame& frame) {
  Enlist enlist;
  if (decode(frame.payload, &enlist)) require(encode(enlist) == frame.payload);
  Failure failure;
  if (decode(frame.payload, kSize, &failure)) {
    require(failure.rank >= -1 && failure.rank < kSize && failure.code != BITRAIL_OK);
    require(std::ranges::none_of(failure.text, [](char c) { return c == '\n' || c == '\x1b'; }));
  }
  Gather gather;
  if (decode(frame.payload, &gather)) {
    require(gather.data.size() == gather.count * (gather.bytes + 4));
    require(encode_gather_header(gather.sequence, gather.count, gather.bytes).size() +
                gather.data.size() ==
            frame.payload.size());
  }
  Spread spread;
  if (decode(frame.payload, kSize, &spread)) require(spread.data.size() == spread.bytes * kSize);
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  Bytes gather = encode_gather_header(1, 2, 3);
  append(&gather, Bytes(2 * 7));
  Bytes spread = encode_spread_header(1, 2);
  append(&spread, Bytes(2 * kSize));
  std::vector<Bytes> seeds = {
      encode(Kind::enlist, encode(Enlist{3, kSize, "10.0.0.1:4000"})),
      encode(Kind::failure, encode(Failure{2, BITRAIL_ERR_PEER_LOST, "rank 2 is lost"})),
      encode(Kind::gather, gather),
      encode(Kind::spread, spread),
      encode(Kind::goodbye, {}),
      encode(Entry{1, kSize, true, "10.0.0.1:4000", "", BITRAIL_OK, ""})};
  Bytes all;
  for (const Bytes& seed : seeds) append(&all, seed);
  seeds.push_back(all);
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  FrameParser whole, split;
  const bool good = whole.feed(bytes).ok();
  size_t at = 0;
  bool split_good = true;
  while (at < size && split_good) {  // in two ways cut: the same frames
    const auto part = bytes.subspan(at, std::min<size_t>(size - at, 5));
    split_good = split.feed(part).ok();
    at += part.size();
  }
  require(good == split_good);
  Frame frame, other;
  while (whole.next(&frame)) {
    require(split.next(&other) && frame.kind == other.kind && frame.payload == other.payload);
    require(frame.payload.size() <= kMaxFrame);
    check(frame);
  }
  require(!split.next(&other));
  check({Kind::failure, Bytes(bytes.begin(), bytes.end())});
  Entry entry;
  Bytes padded(bytes.begin(), bytes.end());
  padded.resize(kEntryBytes);
  if (decode(padded, &entry)) require(entry.code <= BITRAIL_ERR_INTERNAL);
  return 0;
}
