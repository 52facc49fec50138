// The all-gather of a tree. Each rank joins its own contribution with those of the ranks below and
// sends them up; the root sends everybody's down.
#include <poll.h>

#include <algorithm>
#include <cstring>

#include "runtime/bootstrap/bytes.h"
#include "runtime/bootstrap/tree.h"

namespace bitrail::bootstrap {
namespace {

// A rank waits a little longer the higher it stands, so that who waits for the culprit itself is
// the first to name it.
constexpr int kLevelMs = 50;

size_t ranks_below(int rank, int size) {
  size_t count = 0;
  int64_t first = rank, last = rank;
  while (first < size) {
    count += static_cast<size_t>(std::min<int64_t>(last, size - 1) - first + 1);
    first = first * kArity + 1;
    last = last * kArity + kArity;
  }
  return count;
}

bool is_below(int rank, int ancestor) {
  while (rank > ancestor) rank = parent_of(rank);
  return rank == ancestor;
}

}  // namespace

void Tree::wake() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

bool Tree::on_gather(Link* link, const Frame& frame) {
  Gather gather;
  if (link->member.role != Role::child || link->has_gather || !decode(frame.payload, &gather)) {
    return false;
  }
  // A child is at most one call ahead of this rank.
  const bool under_way = call_.active && !call_.complete;
  const uint32_t expected = call_.sequence + (under_way ? 0 : 1);
  if (gather.sequence != expected || gather.count != ranks_below(link->member.rank, size_)) {
    return false;
  }
  link->gather = frame.payload;
  link->has_gather = true;
  advance();
  return true;
}

// Own contribution and those of all children, checked; false after a failure.
bool Tree::everybody_below(std::vector<uint8_t>* payload) {
  const size_t bytes = call_.mine.size();
  std::vector<bool> seen(static_cast<size_t>(size_));
  *payload =
      encode_gather_header(call_.sequence, static_cast<uint32_t>(ranks_below(rank_, size_)), bytes);
  put(payload, static_cast<uint32_t>(rank_));
  payload->insert(payload->end(), call_.mine.begin(), call_.mine.end());
  for (Link& link : links_) {
    if (link.member.role != Role::child) continue;
    Gather gather;
    (void)decode(link.gather, &gather);
    if (gather.bytes != bytes) {
      fail({link.member.rank, BITRAIL_ERR_MISMATCH,
            fmt::format("all-gather of {} bytes at rank {} and of {} bytes at rank {}", bytes,
                        rank_, gather.bytes, link.member.rank)},
           nullptr);
      return false;
    }
    Reader reader(gather.data);
    for (uint32_t i = 0; i < gather.count; i++) {
      const int rank = reader.get<int32_t>();
      (void)reader.take(bytes);
      const bool good = rank > rank_ && rank < size_ && is_below(rank, link.member.rank) &&
                        !seen[static_cast<size_t>(rank)];
      if (!good) {
        fail({link.member.rank, BITRAIL_ERR_PROTOCOL,
              fmt::format("{} gathered for ranks that are not below it", name_of(link))},
             nullptr);
        return false;
      }
      seen[static_cast<size_t>(rank)] = true;
    }
    payload->insert(payload->end(), gather.data.begin(), gather.data.end());
  }
  return true;
}

void Tree::advance() {
  if (!call_.active || call_.sent_up || failed()) return;
  for (const Link& link : links_) {
    if (link.member.role == Role::child && !link.has_gather) return;
  }
  std::vector<uint8_t> payload;
  if (!everybody_below(&payload)) return;
  for (Link& link : links_) {
    link.gather = {};
    link.has_gather = false;
  }
  call_.sent_up = true;
  if (rank_ != 0) {
    for (Link& link : links_) {
      if (link.member.role == Role::parent) send(&link, Kind::gather, payload);
    }
    return;
  }
  const size_t bytes = call_.mine.size();
  Gather all;
  (void)decode(payload, &all);
  std::vector<uint8_t> spread = encode_spread_header(call_.sequence, bytes);
  const size_t header = spread.size();
  spread.resize(header + bytes * static_cast<size_t>(size_));
  Reader reader(all.data);
  for (uint32_t i = 0; i < all.count; i++) {
    const size_t rank = reader.get<uint32_t>();
    const auto part = reader.take(bytes);
    std::copy(part.begin(), part.end(),
              spread.begin() + static_cast<ptrdiff_t>(header + rank * bytes));
  }
  finish(spread);
}

bool Tree::on_spread(const Frame& frame) {
  Spread spread;
  if (!decode(frame.payload, size_, &spread) || !call_.active || !call_.sent_up || call_.complete ||
      spread.sequence != call_.sequence || spread.bytes != call_.mine.size()) {
    return false;
  }
  finish(frame.payload);
  return true;
}

void Tree::finish(std::span<const uint8_t> spread_payload) {
  for (Link& link : links_) {
    if (link.member.role == Role::child) send(&link, Kind::spread, spread_payload);
  }
  Spread spread;
  (void)decode(spread_payload, size_, &spread);
  call_.result.assign(spread.data.begin(), spread.data.end());
  call_.complete = true;
  wake();
}

// Names who is missing, here and to all.
Status Tree::overdue(Deadline deadline) {
  const int height = depth_of(size_ - 1) - depth_of(rank_);
  const int patience = call_.sent_up ? depth_of(size_ - 1) + 2 : height;
  if (now_ns() < deadline.at_ns + int64_t{patience} * kLevelMs * 1'000'000) return {};
  std::string who;
  int culprit = -1, count = 0;
  for (const Link& link : links_) {
    const bool awaited = call_.sent_up ? link.member.role == Role::parent
                                       : link.member.role == Role::child && !link.has_gather;
    if (!awaited) continue;
    who += (count == 0 ? "" : ", ") + name_of(link);
    culprit = link.member.rank;
    count++;
  }
  fail({count == 1 ? culprit : -1, BITRAIL_ERR_TIMEOUT,
        fmt::format("rank {} waited for {} in an all-gather longer than BITRAIL_TIMEOUT_MS", rank_,
                    who)},
       nullptr);
  return Status(failure_.code, failure_.text);
}

Status Tree::allgather(const void* mine, size_t bytes, void* all, Deadline deadline) {
  const std::lock_guard one_at_a_time(calling_);
  std::unique_lock lock(mutex_);
  if (failed()) return Status(failure_.code, failure_.text);
  if (bytes > (kMaxFrame - 64) / static_cast<size_t>(size_) - 4) {
    return bitrail::failure(BITRAIL_ERR_INVALID_ARGUMENT,
                            "all-gather of {} bytes at {} ranks: the bootstrap carries {} bytes in "
                            "all; this is for addresses, not for data",
                            bytes, size_, kMaxFrame);
  }
  const auto* from = static_cast<const uint8_t*>(mine);
  call_.active = true;
  call_.sent_up = call_.complete = false;
  call_.sequence++;
  call_.mine.assign(from, from + bytes);
  for (const Link& link : links_) {
    const bool needed =
        link.member.role == Role::parent || (link.member.role == Role::child && !link.has_gather);
    if (needed && !link.open) {
      fail({link.member.rank, BITRAIL_ERR_PEER_LOST,
            fmt::format("{} left the job before this all-gather of rank {}", name_of(link), rank_)},
           nullptr);
    }
  }
  advance();
  while (!call_.complete && !failed()) {
    uint64_t drained = 0;
    (void)!read(wake_.get(), &drained, sizeof drained);
    pump();
    if (call_.complete || failed()) break;
    int sleep_ms = deadline.left_ms(1000);
    if (deadline.passed()) {
      BITRAIL_TRY(overdue(deadline));
      sleep_ms = kLevelMs / 5;
    }
    lock.unlock();
    pollfd waited[2] = {{epoll_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    (void)::poll(waited, 2, sleep_ms);
    lock.lock();
  }
  call_.active = false;
  if (!call_.complete) return Status(failure_.code, failure_.text);
  if (!call_.result.empty()) std::memcpy(all, call_.result.data(), call_.result.size());
  return {};
}

}  // namespace bitrail::bootstrap
