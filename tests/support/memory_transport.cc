#include "tests/support/memory_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace bitrail::test {
namespace {

struct Parcel {
  uint64_t link = 0, tag = 0;
  uint32_t cookie = 0;
  std::vector<std::byte> data;
};

// Where a context's messages arrive. Shared by the senders, so it outlives its context.
struct Inbox {
  std::mutex mutex;
  std::deque<Parcel> parcels;
  std::map<int, std::deque<std::pair<uint64_t, int>>>
      doors;  // by listener: link and rank of who waits
  int fd = ::eventfd(0, EFD_NONBLOCK);
  ~Inbox() { ::close(fd); }
  void ring() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof(one));
  }
};

struct Posted {
  transport::Buffer buffer;
  transport::Request* request;
  int index;
  std::shared_ptr<size_t> left;  // buffers of the group not filled yet
};

bool hits(const std::atomic<int>& every, std::atomic<uint64_t>* counter) {
  const int n = every.load();
  return n > 0 && counter->fetch_add(1) % static_cast<uint64_t>(n) == static_cast<uint64_t>(n) - 1;
}

void finish(transport::Request* request, bitrail_status_t status, const char* text) {
  request->status = status;
  request->text = text;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
}

}  // namespace

struct Wire::State {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Inbox>> inboxes;  // by rank
  std::atomic<uint64_t> next_link{1}, sent{0}, offered{0}, marked{0};
  Faults* faults = nullptr;
};

namespace {

// Receives of one link, matched by tag.
struct Matching {
  std::map<uint64_t, std::deque<Posted>> posted;
  std::deque<Parcel> unexpected;
};

class MemoryContext : public transport::Context {
 public:
  MemoryContext(Wire::State* wire, int rank) : wire_(wire), rank_(rank) {
    std::lock_guard lock(wire->mutex);
    inbox_ = std::make_shared<Inbox>();
    wire->inboxes[rank] = inbox_;
    properties_.name = "memory";
  }
  const char* name() const override { return "memory"; }
  int devices() const override { return 1; }
  const transport::DeviceProperties& device(int) const override { return properties_; }
  Status listen(int, transport::Handle* handle,
                std::unique_ptr<transport::Listener>* listener) override;
  Status connect(int, const transport::Handle& handle, const transport::Peer& peer, Deadline,
                 std::unique_ptr<Connecting>*, std::unique_ptr<transport::Sender>* sender) override;
  Status register_memory(void*, size_t, transport::MemoryType,
                         std::unique_ptr<transport::Memory>* memory) override {
    *memory = std::make_unique<transport::Memory>();
    return {};
  }
  int progress() override;
  int event_fd() const override { return inbox_->fd; }
  Status arm(bool* idle) override {
    std::lock_guard lock(inbox_->mutex);
    uint64_t count;
    while (::read(inbox_->fd, &count, sizeof(count)) > 0) {
    }
    *idle = inbox_->parcels.empty();
    for (const auto& door : inbox_->doors) *idle = *idle && door.second.empty();
    return {};
  }

  void deliver(Matching* matching, Parcel parcel);

  Wire::State* wire_;
  int rank_;
  int doors_ = 0;
  std::shared_ptr<Inbox> inbox_;
  std::map<uint64_t, Matching> links_;
  transport::DeviceProperties properties_;
};

class MemorySender : public transport::Sender {
 public:
  MemorySender(Wire::State* wire, std::shared_ptr<Inbox> inbox, uint64_t link, int peer)
      : wire_(wire), inbox_(std::move(inbox)), link_(link), peer_(peer) {}
  Status isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie, transport::Memory*,
               transport::Request* request, bool* accepted) override {
    *accepted = !hits(wire_->faults->refuse_every, &wire_->offered);
    if (!*accepted) return {};
    Parcel parcel{link_, tag, cookie, {}};
    if (bytes != 0) {
      const auto* from = static_cast<const std::byte*>(data);
      parcel.data.assign(from, from + bytes);
      if (hits(wire_->faults->corrupt_every, &wire_->marked)) parcel.data[0] ^= std::byte{0xff};
    }
    if (!hits(wire_->faults->lose_every, &wire_->sent)) {
      std::lock_guard lock(inbox_->mutex);
      if (wire_->faults->shuffle != 0 && !inbox_->parcels.empty() &&
          inbox_->parcels.back().tag != tag) {
        inbox_->parcels.insert(inbox_->parcels.end() - 1, std::move(parcel));
      } else {
        inbox_->parcels.push_back(std::move(parcel));
      }
      inbox_->ring();
    }
    finish(request, BITRAIL_OK, "");
    return {};
  }
  std::string peer_address() const override { return "memory:" + std::to_string(peer_); }

 private:
  Wire::State* wire_;
  std::shared_ptr<Inbox> inbox_;
  uint64_t link_;
  int peer_;
};

class MemoryReceiver : public transport::Receiver {
 public:
  MemoryReceiver(MemoryContext* context, uint64_t link, int peer)
      : context_(context), link_(link), peer_(peer) {}
  ~MemoryReceiver() override {
    std::vector<transport::Request*> open;
    for (auto& [tag, queue] : context_->links_[link_].posted)
      for (const Posted& posted : queue)
        if (!posted.request->done) open.push_back(posted.request);
    context_->links_.erase(link_);
    for (transport::Request* request : open)
      if (!request->done) finish(request, BITRAIL_ERR_ABORTED, "closed");
  }
  Status irecv(int count, const transport::Buffer* buffers, transport::Request* request,
               bool* accepted) override {
    *accepted = !hits(context_->wire_->faults->refuse_every, &context_->wire_->offered);
    if (!*accepted) return {};
    request->done = false;
    request->status = BITRAIL_OK;
    auto left = std::make_shared<size_t>(static_cast<size_t>(count));
    Matching& matching = context_->links_[link_];
    for (int i = 0; i < count; i++)
      matching.posted[buffers[i].tag].push_back({buffers[i], request, i, left});
    std::deque<Parcel> waiting;
    waiting.swap(matching.unexpected);
    for (Parcel& parcel : waiting) context_->deliver(&matching, std::move(parcel));
    return {};
  }
  Status flush(int, const transport::Buffer*, transport::Request* request) override {
    finish(request, BITRAIL_OK, "");
    return {};
  }
  std::vector<transport::Unexpected> unexpected() const override {
    std::vector<transport::Unexpected> list;
    for (const Parcel& parcel : context_->links_[link_].unexpected)
      list.push_back({parcel.tag, parcel.cookie, parcel.data.size()});
    return list;
  }
  std::string peer_address() const override { return "memory:" + std::to_string(peer_); }

 private:
  MemoryContext* context_;
  uint64_t link_;
  int peer_;
};

class MemoryListener : public transport::Listener {
 public:
  MemoryListener(MemoryContext* context, int door) : context_(context), door_(door) {}
  Status accept(std::unique_ptr<transport::Receiver>* receiver, transport::Peer* peer) override {
    std::lock_guard lock(context_->inbox_->mutex);
    auto& queue = context_->inbox_->doors[door_];
    if (queue.empty()) return {};
    peer->rank = queue.front().second;
    *receiver = std::make_unique<MemoryReceiver>(context_, queue.front().first, peer->rank);
    context_->links_[queue.front().first];
    queue.pop_front();
    return {};
  }

 private:
  MemoryContext* context_;
  int door_;
};

Status MemoryContext::listen(int, transport::Handle* handle,
                             std::unique_ptr<transport::Listener>* listener) {
  const int place[2] = {rank_, doors_};
  std::memcpy(handle->bytes.data(), place, sizeof(place));
  *listener = std::make_unique<MemoryListener>(this, doors_++);
  return {};
}

Status MemoryContext::connect(int, const transport::Handle& handle, const transport::Peer& peer,
                              Deadline, std::unique_ptr<Connecting>*,
                              std::unique_ptr<transport::Sender>* sender) {
  int place[2];
  std::memcpy(place, handle.bytes.data(), sizeof(place));
  std::shared_ptr<Inbox> inbox;
  {
    std::lock_guard lock(wire_->mutex);
    const auto found = wire_->inboxes.find(place[0]);
    if (found == wire_->inboxes.end()) return {};  // not there yet: called again
    inbox = found->second;
  }
  const uint64_t link = wire_->next_link++;
  {
    std::lock_guard lock(inbox->mutex);
    inbox->doors[place[1]].push_back({link, rank_});
    inbox->ring();
  }
  *sender = std::make_unique<MemorySender>(wire_, inbox, link, peer.rank);
  return {};
}

void MemoryContext::deliver(Matching* matching, Parcel parcel) {
  const auto found = matching->posted.find(parcel.tag);
  if (found == matching->posted.end() || found->second.empty()) {
    matching->unexpected.push_back(std::move(parcel));
    return;
  }
  const Posted posted = found->second.front();
  found->second.pop_front();
  const bool fits = parcel.data.size() <= posted.buffer.bytes;
  if (fits && !parcel.data.empty())
    std::memcpy(posted.buffer.data, parcel.data.data(), parcel.data.size());
  posted.request->received[posted.index] = parcel.data.size();
  posted.request->cookie = parcel.cookie;
  if (!fits) posted.request->status = BITRAIL_ERR_MISMATCH;
  if (--*posted.left != 0) return;
  finish(posted.request, posted.request->status, fits ? "" : "message longer than its receive");
}

int MemoryContext::progress() {
  std::deque<Parcel> arrived;
  {
    std::lock_guard lock(inbox_->mutex);
    arrived.swap(inbox_->parcels);
  }
  int events = 0;
  for (Parcel& parcel : arrived) {
    const auto link = links_.find(parcel.link);
    if (link == links_.end()) {  // not accepted yet
      std::lock_guard lock(inbox_->mutex);
      inbox_->parcels.push_back(std::move(parcel));
      continue;
    }
    deliver(&link->second, std::move(parcel));
    events++;
  }
  return events;
}

}  // namespace

Wire::Wire() : state_(std::make_unique<State>()) { state_->faults = &faults; }
Wire::~Wire() = default;
std::unique_ptr<transport::Context> Wire::context(int rank) {
  return std::make_unique<MemoryContext>(state_.get(), rank);
}

struct Party::State {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, arrived = 0;
  uint64_t round = 0;
  std::vector<std::byte> gathering, result;
  bool failed = false;
  bootstrap::Failure failure;
};

namespace {

class PartyMember : public bootstrap::Bootstrap {
 public:
  PartyMember(Party::State* party, int rank) : party_(party), rank_(rank) {
    fd_ = ::eventfd(0, EFD_NONBLOCK);
  }
  ~PartyMember() override { ::close(fd_); }
  Status allgather(const void* mine, size_t bytes, void* all, Deadline) override {
    std::unique_lock lock(party_->mutex);
    const uint64_t round = party_->round;
    if (party_->arrived == 0) party_->gathering.resize(bytes * static_cast<size_t>(party_->size));
    std::memcpy(party_->gathering.data() + bytes * static_cast<size_t>(rank_), mine, bytes);
    if (++party_->arrived == party_->size) {
      party_->arrived = 0;
      party_->round++;
      party_->result = party_->gathering;
      party_->changed.notify_all();
    } else {
      party_->changed.wait(lock, [&] { return party_->round != round; });
    }
    std::memcpy(all, party_->result.data(), party_->result.size());
    return {};
  }
  const std::string& secret() const override { return secret_; }
  int event_fd() const override { return fd_; }
  void poll() override {}
  bool failed() const override {
    std::lock_guard lock(party_->mutex);
    return party_->failed;
  }
  bootstrap::Failure failure() const override {
    std::lock_guard lock(party_->mutex);
    return party_->failure;
  }
  void report(const bootstrap::Failure& failure) override {
    std::lock_guard lock(party_->mutex);
    if (party_->failed) return;
    party_->failed = true;
    party_->failure = failure;
  }

 private:
  Party::State* party_;
  int rank_, fd_ = -1;
  std::string secret_ = "test";
};

}  // namespace

Party::Party(int size) : state_(std::make_unique<State>()) { state_->size = size; }
Party::~Party() = default;
std::unique_ptr<bootstrap::Bootstrap> Party::bootstrap(int rank) {
  return std::make_unique<PartyMember>(state_.get(), rank);
}
void Party::lose(int rank) {
  std::lock_guard lock(state_->mutex);
  state_->failed = true;
  state_->failure = {rank, BITRAIL_ERR_PEER_LOST, fmt::format("rank {} is lost", rank)};
}

}  // namespace bitrail::test
