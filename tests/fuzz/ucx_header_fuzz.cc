// What the UCX transport reads from the network: handles, the side channel's blobs and the greeting
// in them, and the headers of active messages. None may read outside its bytes or take nonsense.
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/transport/side_channel.h"
#include "runtime/transport/ucx/message.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail;                  // NOLINT(google-build-using-namespace)
using namespace bitrail::transport;       // NOLINT
using namespace bitrail::transport::ucx;  // NOLINT

void require(bool condition) {
  if (!condition) std::abort();
}

void fuzz_handle(const uint8_t* data, size_t size) {
  Handle handle;
  if (size > 0) memcpy(handle.bytes.data(), data, std::min(size, handle.bytes.size()));
  ListenAddress address;
  if (!decode_handle(handle, Kind::ucx, &address).ok()) return;
  // What was understood is what is written again.
  ListenAddress again;
  require(decode_handle(encode_handle(Kind::ucx, address), Kind::ucx, &again).ok());
  require(again.nonce == address.nonce);
  require(address_text(again.socket) == address_text(address.socket));
}

void fuzz_greeting(const std::vector<uint8_t>& blob) {
  Greeting greeting;
  if (!decode_greeting(blob, &greeting).ok()) return;
  require(greeting.worker.size() <= blob.size());
  Greeting again;
  require(decode_greeting(encode_greeting(greeting), &again).ok());
  require(again.worker == greeting.worker && again.nonce == greeting.nonce);
}

template <typename Header>
void fuzz_header(const uint8_t* data, size_t size) {
  Header header;
  require(parse_header(data, size, &header) == (size == sizeof(Header) && data != nullptr));
}

void fuzz_brief(std::vector<uint8_t> bytes) {
  DataHeader header;
  uint8_t* message = nullptr;
  if (!parse_brief(bytes.data(), bytes.size(), &header, &message)) return;
  require(message + (bytes.size() - sizeof(header)) == bytes.data() + bytes.size());
  require(bytes.size() - sizeof(header) <= kBriefBytes);
}

// A part that fits lies inside the receive.
void fuzz_chunk(const uint8_t* data, size_t size) {
  struct {
    ChunkHeader header;
    uint32_t expected, got;
  } input;
  if (size < sizeof(input)) return;
  memcpy(&input, data, sizeof(input));
  if (!chunk_fits(input.header, input.header.bytes, input.expected, input.got)) return;
  require(input.header.offset + input.header.bytes <= input.expected);
  require(uint64_t{input.got} + input.header.bytes <= input.expected);
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  ListenAddress address;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = 1;
  memcpy(&address.socket, &four, sizeof(four));
  const Handle handle = encode_handle(Kind::ucx, address);
  Greeting greeting;
  greeting.worker = {1, 2, 3, 4, 5};
  const std::vector<uint8_t> bytes = encode_greeting(greeting);
  std::vector<uint8_t> blob = {static_cast<uint8_t>(bytes.size()), 0, 0, 0};
  blob.insert(blob.end(), bytes.begin(), bytes.end());
  return {{handle.bytes.begin(), handle.bytes.end()}, bytes, blob};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_handle(data, size);
  fuzz_greeting({data, data + size});
  fuzz_header<DataHeader>(data, size);
  fuzz_brief({data, data + size});
  fuzz_header<RequestHeader>(data, size);
  fuzz_header<FenceHeader>(data, size);
  fuzz_chunk(data, size);
  BlobReader reader;
  const size_t piece = size == 0 ? 1 : data[size - 1] % 64 + 1;
  for (size_t at = 0; at < size && !reader.done();) {
    const std::span<const uint8_t> part(data + at, std::min(piece, size - at));
    size_t used = 0;
    if (!reader.feed(part, &used).ok()) return 0;
    require(used <= part.size() && (used > 0 || reader.done()));
    require(reader.blob().size() <= kMaxBlobBytes);
    at += used;
  }
  if (reader.done()) fuzz_greeting(reader.blob());
  return 0;
}
