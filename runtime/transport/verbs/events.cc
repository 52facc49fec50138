#include "runtime/transport/verbs/events.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "runtime/trace/log.h"
#include "runtime/transport/verbs/errors.h"

namespace bitrail::transport::verbs {
namespace {

struct Watched {
  std::vector<std::shared_ptr<Port>> ports;
  int wake_fd;
};

void ring(int fd) {
  const uint64_t one = 1;
  // Full means that it is readable already.
  while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

// Sets the port's flags. False: nothing that anybody needs to look at.
bool apply(const ibv_async_event& event, Port* port) {
  const bool mine = event.element.port_num == port->number;
  switch (event.event_type) {
    case IBV_EVENT_PORT_ERR:
      if (!mine) return false;
      if (!port->down.exchange(true)) log::warn("{} is down", port->name);
      return true;
    case IBV_EVENT_PORT_ACTIVE:
      if (!mine) return false;
      port->gid_changed = true;  // it may come back with another address
      if (port->down.exchange(false)) log::info("{} is active again", port->name);
      return true;
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      if (!mine) return false;
      port->gid_changed = true;
      log::info("{}: its addresses changed", port->name);
      return true;
    case IBV_EVENT_DEVICE_FATAL:
      port->removed = true;
      log::warn("{}: the device failed or was removed", port->name);
      return true;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_CQ_ERR:
      port->fatal_events++;
      return true;
    default:
      return false;
  }
}

constexpr int kMostEvents = 64;  // of one port before others have their turn

// Takes events of the port; whether one mattered.
bool take_events(Port* port) {
  bool changed = false;
  for (int i = 0; i < kMostEvents && !port->removed; i++) {
    ibv_async_event event{};
    if (table().get_async_event(port->context, &event) == 0) {
      changed |= apply(event, port);
      // The library waits for it where the event's queue pair is destroyed.
      table().ack_async_event(&event);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    log::warn("{}: {}", port->name, errno_text("ibv_get_async_event", errno));
    port->removed = true;  // as the kernel tells of a device that is gone
    changed = true;
  }
  return changed;
}

class EventThread {
 public:
  Status add(Watched* watched) {
    const std::lock_guard life(life_);
    if (!thread_.joinable()) BITRAIL_TRY(start());
    change([&] { watched_.push_back(watched); });
    return {};
  }

  // When it returns, the thread does not know the ports any more.
  void remove(Watched* watched) {
    const std::lock_guard life(life_);
    bool last = false;
    change([&] {
      std::erase(watched_, watched);
      last = watched_.empty();
    });
    if (!last) return;
    change([&] { stop_ = true; });
    thread_.join();
    close(wake_);
    wake_ = -1;
  }

 private:
  Status start() {
    wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_ < 0) {
      return failure(BITRAIL_ERR_SYSTEM, "eventfd: {}; see `ulimit -n`", strerror(errno));
    }
    stop_ = false;
    // The process's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status status;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      close(wake_);
      status = failure(BITRAIL_ERR_SYSTEM, "no thread for the devices' events: {}", error.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
  }

  // Does it and waits until the thread goes by it.
  template <typename Action>
  void change(Action action) {
    std::unique_lock lock(mutex_);
    action();
    const uint64_t mine = ++wanted_;
    ring(wake_);
    seen_changed_.wait(lock, [&] { return seen_ >= mine; });
  }

  void run() {
    std::vector<pollfd> fds;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        seen_ = wanted_;
        seen_changed_.notify_all();
        if (stop_) return;
        fds.assign(1, {wake_, POLLIN, 0});
        for (const Watched* watched : watched_) {
          for (const auto& port : watched->ports) {
            if (!port->removed) fds.push_back({port->context->async_fd, POLLIN, 0});
          }
        }
      }
      if (poll(fds.data(), fds.size(), -1) < 0) continue;  // EINTR, or short of memory
      uint64_t count = 0;
      if (fds[0].revents != 0 && read(wake_, &count, sizeof(count)) < 0) continue;
      const std::lock_guard lock(mutex_);
      if (seen_ == wanted_) take_all();
    }
  }

  void take_all() {
    std::vector<const Port*> changed;
    for (const Watched* watched : watched_) {
      for (const auto& port : watched->ports) {
        if (!port->removed && take_events(port.get())) changed.push_back(port.get());
      }
    }
    for (const Watched* watched : watched_) {
      const bool concerned = std::any_of(
          watched->ports.begin(), watched->ports.end(), [&](const std::shared_ptr<Port>& port) {
            return std::find(changed.begin(), changed.end(), port.get()) != changed.end();
          });
      if (concerned) ring(watched->wake_fd);
    }
  }

  std::mutex life_;  // of the thread
  std::thread thread_;
  int wake_ = -1;

  std::mutex mutex_;  // of what follows
  std::condition_variable seen_changed_;
  std::vector<const Watched*> watched_;
  bool stop_ = false;
  uint64_t wanted_ = 0, seen_ = 0;  // changes, and those that the thread went by
};

EventThread& event_thread() {
  static EventThread thread;
  return thread;
}

class Watch : public EventWatch {
 public:
  Watch(const std::vector<std::shared_ptr<Port>>& ports, int wake_fd) : watched_{ports, wake_fd} {}
  ~Watch() override {
    if (added_) event_thread().remove(&watched_);
  }
  Status start() {
    for (const auto& port : watched_.ports) {
      const int fd = port->context->async_fd;
      const int flags = fcntl(fd, F_GETFL);
      if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return failure(BITRAIL_ERR_SYSTEM, "{}: its events cannot be read: {}", port->name,
                       strerror(errno));
      }
    }
    BITRAIL_TRY(event_thread().add(&watched_));
    added_ = true;
    return {};
  }

 private:
  Watched watched_;
  bool added_ = false;
};

}  // namespace

Status watch_events(const std::vector<std::shared_ptr<Port>>& ports, int wake_fd,
                    std::unique_ptr<EventWatch>* watch) {
  auto made = std::make_unique<Watch>(ports, wake_fd);
  BITRAIL_TRY(made->start());
  *watch = std::move(made);
  return {};
}

}  // namespace bitrail::transport::verbs
