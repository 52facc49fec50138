#include "tests/plugin/driver/mutation.h"

#include <sched.h>

#include <atomic>
#include <mutex>
#include <set>

#include "runtime/common/clock.h"
#include "tests/plugin/driver/forward_net.h"

namespace bitrail::test {
namespace {

constexpr int64_t kBlockMs = 1'500;  // long enough to be noticed, short enough for a test
constexpr int kEarlier = 40;         // calls that go well before the fault

class Mutant : public ForwardNet {
 public:
  Mutant(Net* inner, Fault fault) : ForwardNet(inner), fault_(fault) {}

  nccl::Result connect(void* context, int device, void* handle, void** comm) override {
    nccl::Result result = inner_->connect(context, device, handle, comm);
    const Deadline end = Deadline::in_ms(kBlockMs);
    while (fault_ == Fault::blocking_connect && !end.passed() && result == nccl::kSuccess) {
      sched_yield();
      if (*comm == nullptr) result = inner_->connect(context, device, handle, comm);
    }
    return result;
  }

  nccl::Result register_memory(void* comm, void* data, size_t bytes, int type,
                               void** memory) override {
    const nccl::Result result = inner_->register_memory(comm, data, bytes, type, memory);
    if (fault_ != Fault::lost_registration || result != nccl::kSuccess) return result;
    (void)inner_->deregister_memory(comm, *memory);
    *memory = nullptr;
    return result;
  }

  nccl::Result isend(void* comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                     void** request) override {
    const bool now = ++sends_ > kEarlier;
    if (fault_ == Fault::request_unwritten && now) return nccl::kSuccess;
    if (fault_ == Fault::error_without_room && now) return nccl::kInternalError;
    if (fault_ == Fault::lost_zero_bytes && bytes == 0) {
      *request = &lost_;
      return nccl::kSuccess;
    }
    if (fault_ == Fault::flipped_bit && now && bytes > 1000) {
      static_cast<uint8_t*>(data)[bytes / 2] ^= 4;
    }
    if (fault_ == Fault::reordered && now && tag == 7 && hold(comm, data, bytes, memory)) {
      *request = &held_;
      return nccl::kSuccess;
    }
    const nccl::Result result = inner_->isend(comm, data, bytes, tag, memory, parent, request);
    if (fault_ == Fault::too_many_sizes) remember(*request);
    if (fault_ == Fault::reordered && *request != nullptr) send_held(comm, tag);
    return result;
  }

  nccl::Result irecv(void* comm, int count, void** data, size_t* bytes, int* tags, void** memories,
                     void** parents, void** request) override {
    void* before = *request;
    const nccl::Result result =
        inner_->irecv(comm, count, data, bytes, tags, memories, parents, request);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): NCCL's mark
    auto* mark = reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion);
    if (fault_ == Fault::sentinel_kept && before == mark) *request = mark;
    if (fault_ == Fault::early_done || fault_ == Fault::wrong_size) remember(*request);
    return result;
  }

  nccl::Result test(void* request, int* done, int* sizes) override {
    if (request == &lost_) {
      *done = 1;
      return nccl::kSuccess;
    }
    const int before = *done;
    if (request == &held_) {
      const std::lock_guard lock(mutex_);
      *done = 0;
      return held_.request == nullptr ? nccl::kSuccess : inner_->test(held_.request, done, sizes);
    }
    const nccl::Result result = inner_->test(request, done, sizes);
    if (fault_ == Fault::done_unwritten && *done == 0) *done = before;
    const bool ours = remembered(request, *done != 0);
    if (fault_ == Fault::early_done && ours) *done = 1;
    if (fault_ == Fault::wrong_size && ours && *done == 1 && sizes != nullptr) sizes[0] = 512 << 10;
    if (fault_ == Fault::too_many_sizes && ours && *done == 1 && sizes != nullptr) sizes[1] = 0;
    return result;
  }

 private:
  // The first asked for, by whichever thread, is kept back.
  bool hold(void* comm, void* data, size_t bytes, void* memory) {
    const std::lock_guard lock(mutex_);
    if (held_.comm != nullptr) return false;
    held_ = {comm, data, bytes, memory, nullptr};
    return true;
  }
  void send_held(void* comm, int tag) {
    const std::lock_guard lock(mutex_);
    if (comm != held_.comm || held_.request != nullptr) return;
    (void)inner_->isend(comm, held_.data, held_.bytes, tag, held_.memory, nullptr, &held_.request);
  }
  void remember(void* request) {
    const std::lock_guard lock(mutex_);
    requests_.insert(request);
  }
  bool remembered(void* request, bool forget) {
    const std::lock_guard lock(mutex_);
    const bool found = requests_.contains(request);
    if (forget) requests_.erase(request);
    return found;
  }

  Fault fault_;
  int lost_ = 0;
  std::atomic<int> sends_{0};
  struct Held {  // a send that waits for the next one
    void* comm;
    void* data;
    size_t bytes;
    void* memory;
    void* request;
  } held_ = {};
  std::mutex mutex_;
  std::set<void*> requests_;
};

}  // namespace

const char* fault_name(Fault fault) {
  static const char* const names[kFaults] = {"none",
                                             "request_unwritten",
                                             "sentinel_kept",
                                             "blocking_connect",
                                             "lost_zero_bytes",
                                             "done_unwritten",
                                             "wrong_size",
                                             "too_many_sizes",
                                             "reordered",
                                             "early_done",
                                             "flipped_bit",
                                             "error_without_room",
                                             "lost_registration"};
  return names[static_cast<int>(fault)];
}

std::unique_ptr<Net> mutate(Net* inner, Fault fault) {
  return std::make_unique<Mutant>(inner, fault);
}

}  // namespace bitrail::test
