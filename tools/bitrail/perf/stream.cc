#include "tools/bitrail/perf/stream.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tools/bitrail/perf/aligned.h"

namespace bitrail::tool {
namespace {

constexpr double kMb = 1 << 20;

// Messages of one size between the two ranks. Requests and buffers are members: when anything fails
// the caller ends the link before this goes.
class Stream {
 public:
  Stream(Link* link, const LinkOptions& options, size_t bytes)
      : link_(link), window_(static_cast<size_t>(options.window)), out_(bytes), in_(bytes) {
    for (size_t i = 0; i < bytes; i++) out_[i] = in_[i] = value(i);
  }

  Status prepare() {
    if (out_.empty()) return {};
    BITRAIL_TRY(link_->register_memory(out_.data(), out_.size(), &out_memory_));
    return link_->register_memory(in_.data(), in_.size(), &in_memory_);
  }

  // Rank 0 sends `count` messages, rank 1 notes when each has arrived (from *start on).
  Status one_way(size_t count, int64_t* start, std::vector<int64_t>* arrivals) {
    std::vector<transport::Request>& ring = ring_;
    ring = std::vector<transport::Request>(std::min(window_, count));
    const bool sends = link_->rank() == 0;
    if (!sends) {
      for (transport::Request& request : ring) BITRAIL_TRY(receive(&request));
      arrivals->resize(count);
    }
    uint8_t mine = 0, theirs = 0;
    BITRAIL_TRY(link_->swap(&mine, &theirs, 1));
    *start = now_ns();
    if (sends) {
      for (transport::Request& request : ring) BITRAIL_TRY(send(&request));
    }
    for (size_t i = 0; i < count; i++) {
      transport::Request& oldest = ring[i % ring.size()];
      BITRAIL_TRY(link_->wait(&oldest));
      if (!sends) (*arrivals)[i] = now_ns();
      if (i + ring.size() >= count) continue;
      if (sends) {
        BITRAIL_TRY(send(&oldest));
      } else {
        BITRAIL_TRY(receive(&oldest));
      }
    }
    return {};
  }

  // To and fro `count` times; rank 0 notes each round's duration.
  Status ping_pong(size_t count, std::vector<double>* rounds) {
    ring_ = std::vector<transport::Request>(3);
    transport::Request* receiving = ring_.data();
    transport::Request* next = &ring_[1];
    transport::Request* sending = &ring_[2];
    BITRAIL_TRY(receive(receiving));
    uint8_t mine = 0, theirs = 0;
    BITRAIL_TRY(link_->swap(&mine, &theirs, 1));
    const bool first = link_->rank() == 0;
    int64_t last = now_ns();
    for (size_t i = 0; i < count; i++) {
      if (first) BITRAIL_TRY(send(sending));
      BITRAIL_TRY(link_->wait(receiving));
      if (i + 1 < count) BITRAIL_TRY(receive(next));
      std::swap(receiving, next);
      if (!first) BITRAIL_TRY(send(sending));
      BITRAIL_TRY(link_->wait(sending));
      const int64_t now = now_ns();
      rounds->push_back(static_cast<double>(now - last) / 1e3);
      last = now;
    }
    return {};
  }

  void spoil() { std::fill(in_.begin(), in_.end(), 0xa5); }
  uint64_t wrong() const {
    uint64_t count = 0;
    for (size_t i = 0; i < in_.size(); i++) count += in_[i] != value(i) ? 1 : 0;
    return count;
  }

 private:
  // No period that a piece of a message could have.
  static uint8_t value(size_t i) { return static_cast<uint8_t>((i * 2654435761U) >> 21); }
  Status send(transport::Request* request) {
    return link_->send(out_.data(), out_.size(), 1, out_memory_.get(), request);
  }
  Status receive(transport::Request* request) {
    return link_->receive(in_.data(), in_.size(), 1, in_memory_.get(), request);
  }

  Link* link_;
  size_t window_;
  Bytes out_, in_;
  std::unique_ptr<transport::Memory> out_memory_, in_memory_;
  std::vector<transport::Request> ring_;
};

// `source`'s figures at both ranks; wrong bytes are those of both.
Status share(Link* link, int source, StreamFigures* figures) {
  StreamFigures theirs;
  BITRAIL_TRY(link->swap(figures, &theirs, sizeof theirs));
  const uint64_t wrong = figures->wrong + theirs.wrong;
  if (link->rank() != source) *figures = theirs;
  figures->wrong = wrong;
  return {};
}

}  // namespace

Status measure_bandwidth(Link* link, const LinkOptions& options, size_t bytes,
                         StreamFigures* figures) {
  Stream stream(link, options, bytes);
  Status status = stream.prepare();
  int64_t start = 0;
  std::vector<int64_t> arrivals;
  const auto count = static_cast<size_t>(options.iterations_of(bytes));
  if (options.check) stream.spoil();
  if (status.ok() && options.warmup > 0)
    status = stream.one_way(static_cast<size_t>(options.warmup), &start, &arrivals);
  if (status.ok()) status = stream.one_way(count, &start, &arrivals);
  if (!status.ok()) {
    link->end();  // before the buffers go
    return status;
  }
  figures->bytes = bytes;
  figures->iterations = count;
  if (link->rank() == 1) {
    if (options.check) figures->wrong = stream.wrong();
    const double seconds = static_cast<double>(arrivals.back() - start) / 1e9;
    const auto size = static_cast<double>(bytes);
    figures->message_rate = static_cast<double>(count) / seconds / 1e6;
    figures->average = figures->peak = size * static_cast<double>(count) / seconds / kMb;
    const auto window = std::min(static_cast<size_t>(options.window), count - 1);
    for (size_t i = window; i < count && window > 0; i++) {
      const auto ns = static_cast<double>(std::max<int64_t>(arrivals[i] - arrivals[i - window], 1));
      figures->peak = std::max(figures->peak, size * static_cast<double>(window) / ns * 1e9 / kMb);
    }
  }
  return share(link, 1, figures);
}

Status measure_latency(Link* link, const LinkOptions& options, size_t bytes,
                       StreamFigures* figures) {
  Stream stream(link, options, bytes);
  Status status = stream.prepare();
  std::vector<double> times;
  if (options.check) stream.spoil();
  if (status.ok() && options.warmup > 0)
    status = stream.ping_pong(static_cast<size_t>(options.warmup), &times);
  times.clear();
  const auto count = static_cast<size_t>(options.iterations_of(bytes));
  if (status.ok()) status = stream.ping_pong(count, &times);
  if (!status.ok()) {
    link->end();
    return status;
  }
  figures->bytes = bytes;
  figures->iterations = count;
  if (options.check) figures->wrong = stream.wrong();
  std::sort(times.begin(), times.end());
  figures->t_min = times.front() / 2;
  figures->t_max = times.back() / 2;
  figures->t_typical = times[count / 2] / 2;
  figures->t_99 = times[std::min(count - 1, count * 99 / 100)] / 2;
  figures->t_average =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(count) / 2;
  return share(link, 0, figures);
}

}  // namespace bitrail::tool
