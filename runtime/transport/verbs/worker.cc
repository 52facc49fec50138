#include "runtime/transport/verbs/worker.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/trace/log.h"
#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/link.h"
#include "runtime/transport/verbs/listener.h"

namespace bitrail::transport::verbs {
namespace {

// Enough for about forty connections; more get further queues.
constexpr int kCompletions = 16 << 10;
constexpr int kPollBatch = 32;
static_assert(kMaxRails == kMaxCombined);

Status watch_fd(int epoll, int fd) {
  epoll_event entry{};
  entry.events = EPOLLIN;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &entry) == 0) return {};
  return failure(BITRAIL_ERR_SYSTEM, "epoll_ctl: {}", strerror(errno));
}

}  // namespace

Worker::~Worker() {
  close();
  watch_.reset();
  for (Station& station : stations_) {
    for (const auto& queue : station.queues) table().destroy_cq(queue->cq);
    if (station.channel != nullptr) table().destroy_comp_channel(station.channel);
  }
  if (wake_fd_ >= 0) ::close(wake_fd_);
  if (event_fd_ >= 0) ::close(event_fd_);
}

Status Worker::open(const Options& options, std::shared_ptr<Worker>* worker) {
  std::shared_ptr<Worker> made(new Worker);
  made->options_ = options;
  std::string why;
  BITRAIL_TRY(open_ports(options.ib, &made->ports_, &why));
  if (made->ports_.empty()) {
    return failure(BITRAIL_ERR_UNSUPPORTED, "no usable InfiniBand or RoCE port: {}", why);
  }
  BITRAIL_TRY(made->poller_.open());
  BITRAIL_TRY(made->open_events());
  BITRAIL_TRY(made->open_stations());
  *worker = std::move(made);
  return {};
}

Status Worker::open_events() {
  event_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd_ < 0 || wake_fd_ < 0) {
    return failure(BITRAIL_ERR_SYSTEM, "epoll and eventfd: {}", strerror(errno));
  }
  BITRAIL_TRY(watch_fd(event_fd_, wake_fd_));
  BITRAIL_TRY(watch_fd(event_fd_, poller_.fd()));
  return watch_events(ports_, wake_fd_, &watch_);
}

Status Worker::open_stations() {
  stations_.resize(ports_.size());
  for (size_t i = 0; i < ports_.size(); i++) {
    Station& station = stations_[i];
    station.fatal_seen = ports_[i]->fatal_events;
    station.channel = table().create_comp_channel(ports_[i]->context);
    if (station.channel == nullptr) {
      return failure(BITRAIL_ERR_SYSTEM, "{}: {}", ports_[i]->name,
                     errno_text("create_comp_channel", errno));
    }
    const int flags = fcntl(station.channel->fd, F_GETFL);
    if (flags < 0 || fcntl(station.channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
      return failure(BITRAIL_ERR_SYSTEM, "{}: fcntl: {}", ports_[i]->name, strerror(errno));
    }
    BITRAIL_TRY(watch_fd(event_fd_, station.channel->fd));
  }
  return {};
}

Status Worker::promise_completions(size_t port, int count, CompletionQueue** queue) {
  Station& station = stations_[port];
  for (const auto& known : station.queues) {
    if (known->used + count > known->capacity) continue;
    known->used += count;
    *queue = known.get();
    return {};
  }
  auto made = std::make_unique<CompletionQueue>();
  const int limit = ports_[port]->device_attributes.max_cqe;
  made->capacity = limit > 0 ? std::min(kCompletions, limit) : kCompletions;
  if (made->capacity < count) {
    return failure(BITRAIL_ERR_SYSTEM,
                   "{}: completion queues have {} places at most, {} are needed",
                   ports_[port]->name, made->capacity, count);
  }
  made->cq = table().create_cq(ports_[port]->context, made->capacity, nullptr, station.channel, 0);
  if (made->cq == nullptr) {
    return failure(BITRAIL_ERR_SYSTEM, "{}: a completion queue of {} places: {}",
                   ports_[port]->name, made->capacity, errno_text("create_cq", errno));
  }
  made->used = count;
  *queue = made.get();
  station.queues.push_back(std::move(made));
  return {};
}

Status Worker::combine(const std::vector<int>& parts, int* device) {
  std::vector<size_t> ports;
  for (const int part : parts) {
    const auto port = static_cast<size_t>(part);
    if (part < 0 || port >= ports_.size() || std::count(ports.begin(), ports.end(), port) != 0) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                     "device {} cannot be combined: there are {}, each is used once", part,
                     ports_.size());
    }
    ports.push_back(port);
  }
  if (ports.empty() || ports.size() > kMaxCombined) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} devices to combine, allowed are 1 to {}",
                   ports.size(), kMaxCombined);
  }
  auto known = std::find(combinations_.begin(), combinations_.end(), ports);
  if (known == combinations_.end()) known = combinations_.insert(known, std::move(ports));
  *device = static_cast<int>(ports_.size() + static_cast<size_t>(known - combinations_.begin()));
  return {};
}

std::vector<size_t> Worker::ports_of(int device) const {
  const auto index = static_cast<size_t>(device);
  if (index >= ports_.size()) return combinations_[index - ports_.size()];
  std::vector<size_t> ports(ports_.size());
  for (size_t i = 0; i < ports.size(); i++) ports[i] = (index + i) % ports.size();
  return ports;
}

Status Worker::make_usable(size_t index) {
  Port* port = ports_[index].get();
  if (port->removed) {
    return failure(BITRAIL_ERR_SYSTEM, "{}: the device was removed", port->name);
  }
  if (port->down) return failure(BITRAIL_ERR_SYSTEM, "{} is down", port->name);
  Station& station = stations_[index];
  if (station.lost || port->gid_changed) {
    check_ports();  // ends what the change has broken
    BITRAIL_TRY(refresh_port(options_.ib, port));
    station.lost = false;
  }
  return {};
}

// What the event thread has noted since the last call.
void Worker::check_ports() {
  for (size_t i = 0; i < ports_.size(); i++) {
    const Port& port = *ports_[i];
    Station& station = stations_[i];
    const uint32_t fatal = port.fatal_events.load(std::memory_order_relaxed);
    if (fatal != station.fatal_seen) {
      station.fatal_seen = fatal;
      for (size_t j = 0; j < links.size(); j++) links[j]->check_queue_pairs(port);
    }
    const bool removed = port.removed.load(std::memory_order_relaxed);
    const bool down = port.down.load(std::memory_order_relaxed);
    const bool moved_away = port.gid_changed.load(std::memory_order_relaxed);
    if (station.lost || !(removed || down || moved_away)) continue;
    station.lost = true;
    const char* what = removed ? "the device was removed"
                       : down  ? "the port went down"
                               : "the port's GID changed";
    for (Link* link : links) {
      if (!link->uses(port)) continue;
      link->fail(failure(BITRAIL_ERR_PEER_LOST, "connection with {} over {} is lost: {}",
                         link->name(), port.name, what));
    }
  }
}

int Worker::poll_queue(CompletionQueue* queue) {
  ibv_wc completions[kPollBatch];
  const int count = table().poll_cq(queue->cq, kPollBatch, completions);
  if (count < 0) {
    if (broken_.ok()) {
      broken_ = failure(BITRAIL_ERR_SYSTEM,
                        "poll_cq failed: this transport context cannot be used "
                        "any further");
    }
    return 0;
  }
  for (int i = 0; i < count; i++) {
    const ibv_wc& completion = completions[i];
    QueuePair* pair = pairs.find(static_cast<uint32_t>(completion.wr_id >> 32));
    if (pair == nullptr) continue;  // of one that is gone
    if (completion.status != IBV_WC_SUCCESS) {
      pair->link->errored(pair, completion);
    } else if ((completion.opcode & IBV_WC_RECV) != 0) {
      pair->link->received(pair, completion);
    } else {
      pair->link->sent(pair, completion);
    }
  }
  return count;
}

int Worker::poll_queues() {
  int count = 0;
  for (Station& station : stations_) {
    for (const auto& queue : station.queues) count += poll_queue(queue.get());
  }
  return count;
}

// What had arrived before is looked at first: the last messages before a goodbye, say, when they
// came by another port.
void Worker::end_failing() {
  constexpr int kMostRounds = 4096;
  for (int i = 0; i < kMostRounds && poll_queues() > 0; i++) {
  }
  while (!failing.empty()) {
    Link* link = failing.back();
    failing.pop_back();
    const Status why = link->failing();
    log::info("{}", why.text());
    link->end(why);
  }
}

int Worker::progress() {
  int count = 0;
  if (!held_.empty()) {
    count += static_cast<int>(held_.size());
    deliver_held(nullptr);
  }
  if (closed_) return count;
  if (!broken_.ok()) {
    if (!told_) {
      for (size_t i = 0; i < links.size(); i++) links[i]->end(broken_);
    }
    told_ = true;
    return count;
  }
  // Ends early when something happened for the caller, who may have an answer to send.
  constexpr int kMaxRounds = 16;
  const uint64_t before = moved;
  check_ports();
  for (int i = 0; i < kMaxRounds && moved == before; i++) {
    const int events = poll_queues();
    if (events == 0) break;
    count += events;
  }
  // The clock is for those who poll in vain, and not in each round.
  constexpr uint32_t kIdleRounds = 1024;
  idle_rounds_ = count > 0 ? 0 : idle_rounds_ + 1;
  if (idle_rounds_ >= kIdleRounds) keep_alive();
  if (!failing.empty()) {
    end_failing();
    count++;
  }
  // Set-up is slow anyway; a system call in each round would not be.
  if (poller_.watched() > 0 && (ticks_++ & 255) == 0) count += service_side_channel();
  return count;
}

void Worker::keep_alive() {
  idle_rounds_ = 0;
  const int64_t period_ns = options_.ib.keepalive_ms * 1'000'000;
  if (period_ns <= 0 || links.empty()) return;
  const int64_t now = now_ns();
  for (Link* link : links) link->keep_alive(now, period_ns);
}

int Worker::service_side_channel() {
  const int count = poller_.poll();
  for (size_t i = 0; i < listeners.size(); i++) listeners[i]->service();
  return count;
}

// Takes the completion channels' events, each of which has to be acknowledged.
int Worker::drain_events() {
  int count = 0;
  uint64_t wakes = 0;
  if (read(wake_fd_, &wakes, sizeof(wakes)) == sizeof(wakes)) count++;
  for (const Station& station : stations_) {
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    while (table().get_cq_event(station.channel, &cq, &user) == 0) {
      table().ack_cq_events(cq, 1);
      count++;
    }
  }
  return count;
}

Status Worker::arm(bool* idle) {
  *idle = false;
  if (closed_) return failure(BITRAIL_ERR_BROKEN, "the transport context is closed");
  if (!broken_.ok()) return broken_;
  drain_events();
  check_ports();
  keep_alive();
  if (!held_.empty() || !failing.empty()) return {};
  if (poller_.watched() > 0 && service_side_channel() > 0) return {};
  for (const Station& station : stations_) {
    for (const auto& queue : station.queues) {
      const int error = table().req_notify_cq(queue->cq, 0);
      if (error != 0) {
        return failure(BITRAIL_ERR_SYSTEM, "cannot wait for events: {}",
                       errno_text("req_notify_cq", error));
      }
    }
  }
  // What came before the notification was asked for gives none.
  if (poll_queues() > 0 || !failing.empty()) return {};
  *idle = true;
  return {};
}

int64_t Worker::next_timer_ns() const {
  int64_t next = INT64_MAX;
  for (const VerbsListener* listener : listeners) next = std::min(next, listener->next_timer_ns());
  const int64_t period_ns = options_.ib.keepalive_ms * 1'000'000;
  for (const Link* link : links) {
    next = std::min({next, link->retry_ns(), link->keep_alive_ns(period_ns)});
  }
  return next;
}

void Worker::complete(const Link* owner, Request* request) {
  if (holding_ > 0) return complete(owner, request, BITRAIL_OK, {});
  moved++;
  request->status = BITRAIL_OK;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
}

void Worker::complete(const Link* owner, Request* request, bitrail_status_t status,
                      const std::string& text) {
  moved++;
  if (holding_ > 0) {
    held_.push_back({owner, request, status, text});
    return;
  }
  request->status = status;
  if (status != BITRAIL_OK) request->text = text;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
}

void Worker::deliver_held(const Link* owner) {
  std::vector<Held> mine;
  for (size_t i = 0; i < held_.size();) {
    if (owner != nullptr && held_[i].owner != owner) {
      i++;
      continue;
    }
    mine.push_back(std::move(held_[i]));
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (Held& held : mine) complete(held.owner, held.request, held.status, held.text);
}

// Progresses until `done` or until nothing has moved for what is left of the closing budget.
template <typename Done>
bool Worker::drain(Done done) {
  holding_++;
  int64_t since = now_ns();
  uint64_t seen = moved;
  bool finished = done();
  while (!finished && broken_.ok() && !closed_) {
    for (int i = 0; i < 64; i++) poll_queues();
    check_ports();
    if (!failing.empty()) end_failing();
    finished = done();
    if (finished) break;
    const int64_t now = now_ns();
    if (seen != moved) {
      seen = moved;
      since = now;
    } else if (now - since > closing_budget_ns_) {
      break;
    }
    sched_yield();
  }
  if (!finished) closing_budget_ns_ -= now_ns() - since;
  holding_--;
  return finished;
}

void Worker::close_link(Link* link) {
  poll_queues();  // a hello, say, without which there is nobody to say goodbye to
  drain([link] { return link->ended() || link->outstanding() == 0; });
  if (link->ended()) return;
  link->say_goodbye();
  drain([link] { return link->quiet(); });
}

void Worker::close() {
  if (closed_) return;
  holding_++;
  poll_queues();
  drain([this] {
    return std::all_of(links.begin(), links.end(),
                       [](const Link* link) { return link->ended() || link->outstanding() == 0; });
  });
  for (Link* link : links) link->say_goodbye();
  drain([this] {
    return std::all_of(links.begin(), links.end(), [](const Link* link) { return link->quiet(); });
  });
  for (size_t i = 0; i < links.size(); i++) {
    links[i]->end(failure(BITRAIL_ERR_ABORTED, "the transport context was closed"));
  }
  closed_ = true;
  holding_--;
  deliver_held(nullptr);
}

}  // namespace bitrail::transport::verbs
