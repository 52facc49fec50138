// The socket for long messages: frames out of one end and into the other, and what a peer must not
// send.
#include "runtime/transport/ucx/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <numeric>
#include <vector>

namespace bitrail::transport::ucx {
namespace {

struct Source : FrameSource {
  void streamed(SendOp* op) override { ended.push_back(op); }
  void stream_lost(const std::string& why) override { lost = why; }
  std::vector<SendOp*> ended;
  std::string lost;
};

// Receives of so many bytes by receive id; ids that are not there are not wanted any more.
struct Sink : FrameSink {
  bool frame(const ChunkHeader& header) override {
    const auto found = places.find(header.receive_id);
    return found == places.end() ||
           chunk_fits(header, header.bytes, found->second.size(), got[header.receive_id]);
  }
  uint8_t* place(const ChunkHeader& header) override {
    const auto found = places.find(header.receive_id);
    return found == places.end() ? nullptr : found->second.data() + header.offset;
  }
  void placed(const ChunkHeader& header, size_t bytes) override { got[header.receive_id] += bytes; }
  void stream_ended() override { ended = true; }
  void stream_lost(bitrail_status_t code, const std::string& why) override {
    status = code;
    lost = why;
  }
  std::map<uint32_t, std::vector<uint8_t>> places;
  std::map<uint32_t, size_t> got;
  bool ended = false;
  bitrail_status_t status = BITRAIL_OK;
  std::string lost;
};

class Stream : public testing::Test {
 protected:
  Stream() {
    EXPECT_TRUE(poller.open().ok());
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    in.reset(new InStream(&poller, ends[1], &sink));
    EXPECT_TRUE(in->open().ok());
  }
  ~Stream() override {
    if (out == nullptr && ends[0] >= 0) close(ends[0]);
  }
  void open_out() { out.reset(new OutStream(&poller, ends[0], &waiting, &source)); }
  SendOp message(uint32_t id, size_t bytes, uint8_t first) {
    memory.emplace_back(bytes);
    std::iota(memory.back().begin(), memory.back().end(), first);
    SendOp op{};
    op.bytes = memory.back().data();
    op.size = bytes;
    op.receive_id = id;
    return op;
  }
  void write_raw(const std::vector<uint8_t>& bytes) {
    ASSERT_EQ(write(ends[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    poller.poll();
  }
  static std::vector<uint8_t> bytes_of(const ChunkHeader& header) {
    const auto* begin = reinterpret_cast<const uint8_t*>(&header);
    return {begin, begin + sizeof(header)};
  }

  SidePoller poller;
  int ends[2], waiting = 0;
  Source source;
  Sink sink;
  std::vector<std::vector<uint8_t>> memory;
  std::unique_ptr<InStream> in;
  std::unique_ptr<OutStream> out;
};

TEST_F(Stream, MessagesLongerThanTheSocketArriveWhole) {
  open_out();
  SendOp one = message(1, 3'000'001, 1), two = message(2, 1, 9), three = message(3, 700'000, 5);
  sink.places[1].resize(one.size);
  sink.places[2].resize(two.size);
  sink.places[3].resize(three.size);
  out->push(&one);
  EXPECT_EQ(waiting, 1);  // no room for all of it
  out->push(&two);
  out->push(&three);
  for (int i = 0; i < 10'000 && sink.got[3] < three.size; i++) poller.poll();
  EXPECT_EQ(sink.places[1], memory[0]);
  EXPECT_EQ(sink.places[2], memory[1]);
  EXPECT_EQ(sink.places[3], memory[2]);
  EXPECT_EQ(source.ended, (std::vector<SendOp*>{&one, &two, &three}));
  EXPECT_EQ(waiting, 0);
  out.reset();
  poller.poll();
  EXPECT_TRUE(sink.ended);
  EXPECT_EQ(sink.lost, "");
}

TEST_F(Stream, WhatNobodyWantsIsDroppedAndTheNextArrives) {
  open_out();
  SendOp unwanted = message(7, 400'000, 1), wanted = message(8, 100, 2);
  sink.places[8].resize(100);
  out->push(&unwanted);
  out->push(&wanted);
  for (int i = 0; i < 10'000 && sink.got[8] < 100; i++) poller.poll();
  EXPECT_EQ(sink.places[8], memory[1]);
  EXPECT_EQ(sink.got.count(7), 0U);
}

TEST_F(Stream, AReceiveThatGoesInTheMiddleIsNotWrittenToAnyMore) {
  sink.places[1] = std::vector<uint8_t>(100, 0);
  std::vector<uint8_t> bytes = bytes_of({1, 100, 0});
  bytes.resize(bytes.size() + 40, 0xee);
  write_raw(bytes);
  EXPECT_EQ(sink.got[1], 40U);
  sink.places.erase(1);
  write_raw(std::vector<uint8_t>(60, 0xee));
  EXPECT_EQ(sink.got[1], 40U);
  sink.places[2].resize(3);
  bytes = bytes_of({2, 3, 0});
  bytes.insert(bytes.end(), {1, 2, 3});
  for (const uint8_t byte : bytes) write_raw({byte});  // in the smallest pieces
  EXPECT_EQ(sink.places[2], (std::vector<uint8_t>{1, 2, 3}));
}

TEST_F(Stream, GivingUpInTheMiddleEndsItForThePeer) {
  open_out();
  SendOp op = message(1, 8'000'000, 1), next = message(2, 10, 1);
  sink.places[1].resize(op.size);
  out->push(&op);
  out->remove(&op);
  EXPECT_EQ(waiting, 0);
  for (int i = 0; i < 1000 && sink.lost.empty(); i++) poller.poll();
  EXPECT_EQ(sink.status, BITRAIL_ERR_PEER_LOST);
  EXPECT_NE(sink.lost.find("middle of a message"), std::string::npos) << sink.lost;
  EXPECT_EQ(source.lost, "");
  out->push(&next);
  EXPECT_NE(source.lost, "");
  out->remove(&next);
}

TEST_F(Stream, RemovingWhatHasNotBegunHarmsNothing) {
  open_out();
  SendOp one = message(1, 2'000'000, 1), two = message(2, 10, 1), three = message(3, 10, 4);
  sink.places[1].resize(one.size);
  sink.places[3].resize(three.size);
  out->push(&one);
  out->push(&two);
  out->push(&three);
  out->remove(&two);
  for (int i = 0; i < 10'000 && sink.got[3] < three.size; i++) poller.poll();
  EXPECT_EQ(sink.places[3], memory[2]);
  EXPECT_EQ(source.ended, (std::vector<SendOp*>{&one, &three}));
}

TEST_F(Stream, ThePeerIsGone) {
  open_out();
  in.reset();
  SendOp op = message(1, 100, 1);
  out->push(&op);
  EXPECT_NE(source.lost, "");
  out->remove(&op);
}

TEST_F(Stream, FramesThatCannotBe) {
  for (const ChunkHeader& header :
       {ChunkHeader{1, 0, 0}, ChunkHeader{1, 101, 0}, ChunkHeader{1, 100, 1},
        ChunkHeader{1, 1, ~uint64_t{0}}, ChunkHeader{1, 1U << 31, 0}}) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    Sink other;
    other.places[1].resize(100);
    InStream stream(&poller, pair[1], &other);
    ASSERT_TRUE(stream.open().ok());
    ASSERT_EQ(write(pair[0], &header, sizeof(header)), static_cast<ssize_t>(sizeof(header)));
    poller.poll();
    EXPECT_EQ(other.status, BITRAIL_ERR_PROTOCOL) << header.bytes << " at " << header.offset;
    char byte = 0;
    EXPECT_EQ(read(pair[0], &byte, 1), 0);  // closed
    close(pair[0]);
  }
}

}  // namespace
}  // namespace bitrail::transport::ucx
