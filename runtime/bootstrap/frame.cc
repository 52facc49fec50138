#include "runtime/bootstrap/frame.h"

#include <algorithm>
#include <array>

#include "runtime/bootstrap/bytes.h"

namespace bitrail::bootstrap {
namespace {

constexpr std::array<uint8_t, 4> kMagic = {'B', 'R', 'T', 'F'};
constexpr size_t kHeader = 12, kKindAt = 4, kLengthAt = 8;
constexpr size_t kMaxText = 2048;

size_t limit(uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::gather:
    case Kind::spread:
      return kMaxFrame;
    case Kind::goodbye:
      return 0;
    default:
      return kMaxControl;
  }
}

bool header_ok(std::span<const uint8_t> header, size_t* length) {
  const uint8_t kind = header[kKindAt];
  *length = Reader(header.subspan(kLengthAt)).get<uint32_t>();
  return std::equal(kMagic.begin(), kMagic.end(), header.begin()) &&
         kind >= static_cast<uint8_t>(Kind::enlist) &&
         kind <= static_cast<uint8_t>(Kind::goodbye) && header[5] == 0 && header[6] == 0 &&
         header[7] == 0 && *length <= limit(kind);
}

}  // namespace

std::vector<uint8_t> encode(Kind kind, std::span<const uint8_t> payload) {
  std::vector<uint8_t> out(kMagic.begin(), kMagic.end());
  out.reserve(kHeader + payload.size());
  put(&out, static_cast<uint32_t>(kind));
  put(&out, static_cast<uint32_t>(payload.size()));
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

Status FrameParser::feed(std::span<const uint8_t> bytes) {
  while (failure_.ok() && !bytes.empty()) {
    size_t length = 0;
    if (input_.size() >= kHeader) (void)header_ok(input_, &length);
    const size_t want = kHeader + length - input_.size();
    const auto part = bytes.first(std::min(want, bytes.size()));
    input_.insert(input_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (input_.size() < kHeader) break;
    if (!header_ok(input_, &length)) {
      failure_ = failure(BITRAIL_ERR_PROTOCOL, "a peer sent a frame that makes no sense");
      input_.clear();
      break;
    }
    if (input_.size() < kHeader + length) continue;
    Frame frame;
    frame.kind = static_cast<Kind>(input_[kKindAt]);
    frame.payload.assign(input_.begin() + kHeader, input_.end());
    frames_.push_back(std::move(frame));
    input_.clear();
  }
  return failure_;
}

bool FrameParser::next(Frame* frame) {
  if (frames_.empty()) return false;
  *frame = std::move(frames_.front());
  frames_.pop_front();
  return true;
}

std::vector<uint8_t> encode(const Enlist& enlist) {
  std::vector<uint8_t> out;
  put(&out, enlist.rank);
  put(&out, enlist.size);
  put_text(&out, enlist.address);
  return out;
}

bool decode(std::span<const uint8_t> payload, Enlist* enlist) {
  Reader reader(payload);
  enlist->rank = reader.get<int32_t>();
  enlist->size = reader.get<int32_t>();
  enlist->address = reader.text();
  return reader.finished() && enlist->address.size() <= 256;
}

std::vector<uint8_t> encode(const Failure& failure) {
  std::vector<uint8_t> out;
  put(&out, static_cast<int32_t>(failure.rank));
  put(&out, static_cast<uint32_t>(failure.code));
  put_text(&out, std::string_view(failure.text).substr(0, kMaxText));
  return out;
}

bool decode(std::span<const uint8_t> payload, int size, Failure* failure) {
  Reader reader(payload);
  failure->rank = reader.get<int32_t>();
  const auto code = reader.get<uint32_t>();
  failure->text = reader.text().substr(0, kMaxText);
  for (char& c : failure->text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  if (code < BITRAIL_ERR_INVALID_ARGUMENT || code > BITRAIL_ERR_INTERNAL) return false;
  failure->code = static_cast<bitrail_status_t>(code);
  return reader.finished() && failure->rank >= -1 && failure->rank < size;
}

std::vector<uint8_t> encode_gather_header(uint32_t sequence, uint32_t count, uint64_t bytes) {
  std::vector<uint8_t> out;
  put(&out, sequence);
  put(&out, count);
  put(&out, bytes);
  return out;
}

bool decode(std::span<const uint8_t> payload, Gather* gather) {
  Reader reader(payload);
  gather->sequence = reader.get<uint32_t>();
  gather->count = reader.get<uint32_t>();
  gather->bytes = reader.get<uint64_t>();
  gather->data = reader.left();
  return reader.good() && gather->bytes <= kMaxFrame &&
         gather->data.size() == uint64_t{gather->count} * (gather->bytes + 4);
}

std::vector<uint8_t> encode_spread_header(uint32_t sequence, uint64_t bytes) {
  std::vector<uint8_t> out;
  put(&out, sequence);
  put(&out, bytes);
  return out;
}

bool decode(std::span<const uint8_t> payload, int size, Spread* spread) {
  Reader reader(payload);
  spread->sequence = reader.get<uint32_t>();
  spread->bytes = reader.get<uint64_t>();
  spread->data = reader.left();
  return reader.good() && spread->bytes <= kMaxFrame &&
         spread->data.size() == spread->bytes * static_cast<uint64_t>(size);
}

}  // namespace bitrail::bootstrap
