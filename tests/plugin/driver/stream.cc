#include "tests/plugin/driver/stream.h"

#include <algorithm>

namespace bitrail::test {
namespace {

constexpr uint8_t kCanary = 0x5a;
constexpr int kUntouched = -7;

// What *request holds before a call: anything but an answer.
void* unwritten() {
  static int object;
  return &object;
}

// True when done. Looks at what test() wrote.
bool test_request(Stream* stream, const Caller& call, void* request, int count, int* sizes) {
  int done = -1;
  call("test", [&] { return stream->net->test(request, &done, sizes); });
  require(done == 0 || done == 1, "test leaves *done unwritten");
  if (done == 0 || sizes == nullptr) return done == 1;
  require(sizes[count] == kUntouched, "test writes more sizes than there are");
  return true;
}

bool post_part(Stream* stream, const Caller& call, uint64_t index, Stream::Flight* flight) {
  const int part = flight->step.send_order[flight->parts_posted];
  uint8_t* data = stream->slot(index) + flight->step.offset[part];
  const size_t bytes = flight->step.bytes[part];
  fill(data, bytes, message_seed(stream->seed, index, part));
  void* request = unwritten();
  void* parent = index % 4 == 0 ? stream : nullptr;
  call("isend", [&] {
    return stream->net->isend(stream->comm, data, bytes, flight->step.tags[part], stream->memory,
                              parent, &request);
  });
  require(request != unwritten(), "isend leaves *request unwritten");
  if (request == nullptr) return false;
  flight->requests[part] = request;
  flight->done[part] = false;
  flight->parts_posted++;
  return true;
}

bool post_receive(Stream* stream, const Caller& call, uint64_t index, Stream::Flight* flight) {
  const Step& step = flight->step;
  void* data[kMaxGroup];
  size_t bytes[kMaxGroup];
  int tags[kMaxGroup];
  void* memories[kMaxGroup];
  void* parents[kMaxGroup];
  for (int i = 0; i < step.count; i++) {
    uint8_t* place = stream->slot(index) + step.offset[i];
    if (step.bytes[i] < step.capacity) place[step.bytes[i]] = kCanary;
    data[i] = place;
    bytes[i] = step.capacity;
    tags[i] = step.tags[i];
    memories[i] = stream->memory;
    parents[i] = index % 4 == 0 ? stream : nullptr;
  }
  void* request = unwritten();
  if (stream->protocol == Protocol::ll) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): NCCL's mark
    request = reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion);
  }
  void* before = request;
  call("irecv", [&] {
    return stream->net->irecv(stream->comm, step.count, data, bytes, tags, memories, parents,
                              &request);
  });
  require(request != before, "irecv leaves *request unwritten");
  flight->requests[0] = request;
  return request != nullptr;
}

void check_received(Stream* stream, uint64_t index, const Step& step, const int* sizes) {
  for (int i = 0; i < step.count; i++) {
    const uint8_t* place = stream->slot(index) + step.offset[i];
    const size_t bytes = step.bytes[i];
    require(sizes == nullptr || sizes[i] == static_cast<int>(bytes), "test tells a wrong size");
    require(matches(place, bytes, message_seed(stream->seed, index, i)), "the data is wrong");
    require(bytes == step.capacity || place[bytes] == kCanary, "data beyond the message");
  }
}

void flush(Stream* stream, const Caller& call, uint64_t index, const Step& step) {
  void* data[kMaxGroup];
  int bytes[kMaxGroup];
  void* memories[kMaxGroup];
  for (int i = 0; i < step.count; i++) {
    data[i] = stream->slot(index) + step.offset[i];
    bytes[i] = static_cast<int>(step.bytes[i]);
    memories[i] = stream->memory;
  }
  void* request = nullptr;
  call("iflush", [&] {
    return stream->net->iflush(stream->comm, step.count, data, bytes, memories, &request);
  });
  while (request != nullptr && !test_request(stream, call, request, 0, nullptr)) {
  }
}

}  // namespace

uint64_t count_steps(uint64_t seed, Protocol protocol, size_t bytes) {
  uint64_t steps = 0;
  for (size_t sum = 0; sum < bytes; steps++) {
    const Step step = plan_step(seed, steps, protocol);
    for (int i = 0; i < step.count; i++) sum += step.bytes[i];
  }
  return steps;
}

bool advance_send(Stream* stream, const Caller& call) {
  bool moved = false;
  while (stream->posted < stream->steps && stream->posted - stream->finished < kSteps) {
    Stream::Flight* flight = &stream->flights[stream->posted % kSteps];
    if (flight->parts_posted == 0) {
      flight->step = plan_step(stream->seed, stream->posted, stream->protocol);
    }
    while (flight->parts_posted < flight->step.count &&
           post_part(stream, call, stream->posted, flight)) {
      moved = true;
    }
    if (flight->parts_posted < flight->step.count) break;
    stream->posted++;
  }
  if (stream->finished == stream->posted) return moved;
  Stream::Flight* flight = &stream->flights[stream->finished % kSteps];
  bool all = true;
  for (int i = 0; i < flight->step.count; i++) {
    int sizes[2] = {kUntouched, kUntouched};
    int* wanted = stream->finished % 3 == 0 ? nullptr : sizes;
    if (!flight->done[i]) {
      flight->done[i] = test_request(stream, call, flight->requests[i], 1, wanted);
    }
    all = all && flight->done[i];
  }
  if (!all) return moved;
  flight->parts_posted = 0;
  stream->finished++;
  return true;
}

bool advance_receive(Stream* stream, const Caller& call) {
  bool moved = false;
  while (stream->posted < stream->steps && stream->posted - stream->finished < kSteps) {
    Stream::Flight* flight = &stream->flights[stream->posted % kSteps];
    flight->step = plan_step(stream->seed, stream->posted, stream->protocol);
    if (!post_receive(stream, call, stream->posted, flight)) break;
    stream->posted++;
    moved = true;
  }
  if (stream->finished == stream->posted) return moved;
  const uint64_t index = stream->finished;
  Stream::Flight* flight = &stream->flights[index % kSteps];
  int sizes[64];
  std::fill(std::begin(sizes), std::end(sizes), kUntouched);
  int* wanted = index % 5 == 0 ? nullptr : sizes;
  if (!test_request(stream, call, flight->requests[0], flight->step.count, wanted)) return moved;
  check_received(stream, index, flight->step, wanted);
  if (index % 16 == 0) flush(stream, call, index, flight->step);
  stream->finished++;
  return true;
}

}  // namespace bitrail::test
