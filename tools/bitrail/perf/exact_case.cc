// The exact collectives: results are compared element by element.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tools/bitrail/perf/aligned.h"
#include "tools/bitrail/perf/case.h"
#include "tools/bitrail/perf/pattern.h"

namespace bitrail::tool {
namespace {

enum class Kind { allreduce, reduce_scatter, allgather, broadcast, alltoall, sendrecv };

Kind kind_of(const std::string& name) {
  static const char* const names[] = {"allreduce", "reduce_scatter", "allgather",
                                      "broadcast", "alltoall",       "sendrecv"};
  const auto* found = std::find(std::begin(names), std::end(names), name);
  return static_cast<Kind>(found - std::begin(names));
}

class ExactCase final : public Case {
 public:
  ExactCase(bitrail_comm_t comm, const PerfOptions& options, size_t wanted)
      : comm_(comm),
        kind_(kind_of(options.collective)),
        type_(options.type),
        op_(options.op),
        root_(options.root),
        element_(bitrail_type_size(options.type)),
        rank_(bitrail_comm_rank(comm)),
        size_(bitrail_comm_world_size(comm)) {
    const bool split =
        kind_ == Kind::reduce_scatter || kind_ == Kind::allgather || kind_ == Kind::alltoall;
    const auto parts = static_cast<size_t>(split ? size_ : 1);
    count = std::max<size_t>(1, wanted / element_ / parts);
    bytes = count * element_ * parts;
    reduces = kind_ == Kind::allreduce || kind_ == Kind::reduce_scatter;
    rooted = kind_ == Kind::broadcast;
    const double others = static_cast<double>(size_ - 1) / size_;
    bus_factor = kind_ == Kind::allreduce ? 2 * others : (split ? others : 1);
    send_.resize(kind_ == Kind::allgather ? count * element_ : bytes);
    recv_.resize(kind_ == Kind::reduce_scatter ? count * element_ : bytes);
  }

  bool has_in_place() const override { return kind_ != Kind::alltoall && kind_ != Kind::sendrecv; }

  bitrail_status_t prepare(bool in_place) override {
    std::memset(recv_.data(), 0xa5, recv_.size());
    const size_t elements =
        kind_ == Kind::allgather ? count : bytes / element_;  // of this rank's input
    fill(type_, rank_values(type_, rank_), 0, elements, input(in_place));
    return BITRAIL_OK;
  }

  bitrail_status_t call(bool in_place) override {
    const void* send = input(in_place);
    void* recv = output(in_place);
    switch (kind_) {
      case Kind::allreduce:
        return bitrail_allreduce(comm_, send, recv, count, type_, op_, nullptr);
      case Kind::reduce_scatter:
        return bitrail_reduce_scatter(comm_, send, recv, count, type_, op_, nullptr);
      case Kind::allgather:
        return bitrail_allgather(comm_, send, recv, count, type_, nullptr);
      case Kind::broadcast:
        return bitrail_broadcast(comm_, send, recv, count, type_, root_, nullptr);
      case Kind::alltoall:
        return bitrail_alltoall(comm_, send, recv, count, type_, nullptr);
      default:
        return send_and_receive(send, recv);
    }
  }

  bitrail_status_t check(bool in_place, double* figure) override {
    const auto* got = static_cast<const uint8_t*>(output(in_place));
    const auto rank = static_cast<size_t>(rank_);
    size_t wrong = 0;
    // An average may round differently: division or multiplication by the inverse.
    const uint64_t ulps = op_ == BITRAIL_AVG ? 1 : 0;
    const auto part = [&](int from, size_t first, size_t index) {
      wrong += count_wrong(type_, rank_values(type_, from), first, count,
                           got + index * count * element_, 0);
    };
    switch (kind_) {
      case Kind::allreduce:
        wrong = count_wrong(type_, reduced_values(type_, op_, size_), 0, count, got, ulps);
        break;
      case Kind::reduce_scatter:
        wrong =
            count_wrong(type_, reduced_values(type_, op_, size_), rank * count, count, got, ulps);
        break;
      case Kind::broadcast:
        part(root_, 0, 0);
        break;
      case Kind::sendrecv:
        part((rank_ + size_ - 1) % size_, 0, 0);
        break;
      case Kind::allgather:
      case Kind::alltoall:
        for (int from = 0; from < size_; from++)
          part(from, kind_ == Kind::alltoall ? rank * count : 0, static_cast<size_t>(from));
        break;
    }
    *figure = static_cast<double>(wrong);
    return BITRAIL_OK;
  }

  uint64_t checksum() const override {
    return checksum_bytes(send_.data(), send_.size()) ^ checksum_bytes(recv_.data(), recv_.size());
  }

 private:
  // In place, the part that is the rank's own lies inside the other buffer.
  void* input(bool in_place) {
    if (!in_place || kind_ == Kind::reduce_scatter) return send_.data();
    return recv_.data() +
           (kind_ == Kind::allgather ? static_cast<size_t>(rank_) * count * element_ : 0);
  }
  void* output(bool in_place) {
    if (in_place && kind_ == Kind::reduce_scatter)
      return send_.data() + static_cast<size_t>(rank_) * count * element_;
    return recv_.data();
  }

  bitrail_status_t send_and_receive(const void* send, void* recv) {
    bitrail_request_t receiving = nullptr, sending = nullptr;
    bitrail_status_t status =
        bitrail_recv(comm_, recv, bytes, (rank_ + size_ - 1) % size_, 0, nullptr, &receiving);
    if (status != BITRAIL_OK) return status;
    status = bitrail_send(comm_, send, bytes, (rank_ + 1) % size_, 0, &sending);
    const bitrail_status_t received = bitrail_wait(&receiving);
    if (status != BITRAIL_OK) return status;
    status = bitrail_wait(&sending);
    return received != BITRAIL_OK ? received : status;
  }

  bitrail_comm_t comm_;
  Kind kind_;
  bitrail_type_t type_;
  bitrail_op_t op_;
  int root_;
  size_t element_;
  int rank_, size_;
  Bytes send_, recv_;
};

}  // namespace

bitrail_status_t make_exact_case(bitrail_comm_t comm, const PerfOptions& options, size_t bytes,
                                 std::unique_ptr<Case>* result) {
  *result = std::make_unique<ExactCase>(comm, options, bytes);
  return BITRAIL_OK;
}

uint64_t checksum_bytes(const void* data, size_t bytes) {
  // FNV-1a over 8-byte words, then the tail: quick enough for gigabytes.
  const auto* p = static_cast<const uint8_t*>(data);
  uint64_t hash = 0xcbf29ce484222325, word = 0;
  for (; bytes >= sizeof word; bytes -= sizeof word, p += sizeof word) {
    std::memcpy(&word, p, sizeof word);
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  for (; bytes > 0; bytes--, p++) hash = (hash ^ *p) * 0x100000001b3;
  return hash;
}

}  // namespace bitrail::tool
