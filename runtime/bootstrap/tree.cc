#include "runtime/bootstrap/tree.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/trace/log.h"

namespace bitrail::bootstrap {
namespace {

constexpr int kGoodbyeMs = 200;  // for sockets that take no more bytes when this rank leaves

}  // namespace

Tree::Tree(const World& world, std::vector<Member> members)
    : rank_(world.rank), size_(world.size), secret_(world.secret) {
  for (Member& member : members) {
    Link link;
    link.member = std::move(member);
    links_.push_back(std::move(link));
  }
}

Status Tree::watch() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) {
    return bitrail::failure(BITRAIL_ERR_SYSTEM, "epoll or eventfd: {}", std::strerror(errno));
  }
  for (size_t i = 0; i < links_.size(); i++) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, links_[i].member.connection->fd(), &event) != 0) {
      return bitrail::failure(BITRAIL_ERR_SYSTEM, "epoll_ctl: {}", std::strerror(errno));
    }
    update_events(&links_[i]);
  }
  return {};
}

Status Tree::start(Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    BITRAIL_TRY(watch());
    for (Link& link : links_) handle(&link);  // what came with the last bytes of the proof
  }
  BITRAIL_TRY(allgather(nullptr, 0, nullptr, deadline));
  const std::lock_guard lock(mutex_);
  release_enlisted();
  return {};
}

Tree::~Tree() {
  const std::lock_guard lock(mutex_);
  const Deadline until = Deadline::in_ms(kGoodbyeMs);
  for (Link& link : links_) {
    if (!link.open) continue;
    Connection& connection = *link.member.connection;
    connection.send(Kind::goodbye);
    while (connection.wants_to_send() && !until.passed()) {
      pollfd entry{connection.fd(), POLLOUT, 0};
      (void)::poll(&entry, 1, until.left_ms(kGoodbyeMs));
      connection.flush();
    }
    connection.finish_sending();
  }
}

void Tree::release_enlisted() {
  for (Link& link : links_) {
    if (link.member.role != Role::enlisted || !link.open) continue;
    send(&link, Kind::goodbye);
    drop(&link);
  }
}

void Tree::drop(Link* link) {
  link->open = false;
  link->member.connection->finish_sending();
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, link->member.connection->fd(), nullptr);
  link->member.connection.reset();
}

std::string Tree::name_of(const Link& link) const {
  return fmt::format("rank {} ({})", link.member.rank, link.member.address);
}

void Tree::send(Link* link, Kind kind, std::span<const uint8_t> payload) {
  if (!link->open) return;
  link->member.connection->send(kind, payload);
  update_events(link);
}

void Tree::update_events(Link* link) {
  const bool out = link->member.connection->wants_to_send();
  if (out == link->watches_out) return;
  link->watches_out = out;
  epoll_event event{};
  event.events = out ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(link - links_.data());
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link->member.connection->fd(), &event);
}

void Tree::fail(const Failure& failure, const Link* from) {
  if (failed()) return;  // the first one wins
  failure_ = failure;
  failed_.store(true, std::memory_order_release);
  log::info("the job failed: {}", failure.text);
  const std::vector<uint8_t> payload = encode(failure);
  for (Link& link : links_) {
    if (&link != from) send(&link, Kind::failure, payload);
  }
  wake();
}

void Tree::on_end(Link* link) {
  const Connection& connection = *link->member.connection;
  Failure lost{link->member.rank, BITRAIL_ERR_PEER_LOST, ""};
  if (connection.status().ok()) {
    lost.text =
        fmt::format("{} is lost: seen by rank {}: {}", name_of(*link), rank_, connection.detail());
  } else {
    lost.code = connection.status().code();
    lost.text =
        fmt::format("{} and rank {}: {}", name_of(*link), rank_, connection.status().text());
  }
  const Link* gone = link;
  drop(link);
  fail(lost, gone);
}

// Whoever waits for this rank's part of an all-gather waits in vain.
void Tree::on_goodbye(Link* link) {
  log::trace("{} left", name_of(*link));
  const bool awaited = call_.active && !call_.complete &&
                       ((link->member.role == Role::child && !link->has_gather) ||
                        link->member.role == Role::parent);
  drop(link);
  if (awaited) {
    fail({link->member.rank, BITRAIL_ERR_PEER_LOST,
          fmt::format("{} left the job while rank {} waited for it in an all-gather",
                      name_of(*link), rank_)},
         link);
  }
}

bool Tree::on_frame(Link* link, const Frame& frame) {
  switch (frame.kind) {
    case Kind::failure: {
      Failure heard;
      if (!decode(frame.payload, size_, &heard)) return false;
      fail(heard, link);
      return true;
    }
    case Kind::goodbye:
      on_goodbye(link);
      return true;
    case Kind::gather:
      return on_gather(link, frame);
    case Kind::spread:
      return link->member.role == Role::parent && on_spread(frame);
    default:
      return false;
  }
}

void Tree::handle(Link* link) {
  if (!link->open) return;
  Connection& connection = *link->member.connection;
  connection.flush();
  connection.receive();
  Frame frame;
  while (link->open && connection.next(&frame)) {
    if (on_frame(link, frame)) continue;
    const std::string name = name_of(*link);
    drop(link);
    fail({link->member.rank, BITRAIL_ERR_PROTOCOL,
          fmt::format("{} sent rank {} a frame that makes no sense", name, rank_)},
         link);
  }
  if (!link->open) return;
  if (connection.closed()) {
    on_end(link);
  } else {
    update_events(link);
  }
}

void Tree::pump() {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; i++) handle(&links_[events[static_cast<size_t>(i)].data.u64]);
}

void Tree::poll() {
  const std::lock_guard lock(mutex_);
  pump();
}

Failure Tree::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Tree::report(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  pump();  // a failure that arrived before this one came first
  fail(failure, nullptr);
}

// ---- Bootstrap ----

Status Bootstrap::join(const World& world, const config::Settings& settings, Deadline deadline,
                       std::unique_ptr<Bootstrap>* bootstrap) {
  if (world.size < 1 || world.rank < 0 || world.rank >= world.size) {
    return bitrail::failure(BITRAIL_ERR_INVALID_ARGUMENT, "rank {} of world size {}", world.rank,
                            world.size);
  }
  log::set_rank(world.rank);
  std::vector<Member> members;
  World met = world;
  if (world.size > 1) BITRAIL_TRY(meet(&met, settings, deadline, &members));
  auto tree = std::make_unique<Tree>(met, std::move(members));
  BITRAIL_TRY(tree->start(deadline));
  log::info("joined as rank {} of {} ({})", world.rank, world.size, world.launcher);
  *bootstrap = std::move(tree);
  return {};
}

}  // namespace bitrail::bootstrap
