#include "tests/plugin/collnet/mutation.h"

#include <atomic>
#include <map>
#include <mutex>

namespace bitrail::test {
namespace {

using nccl::Result;

constexpr int kEarlier = 6;  // calls that go well before the fault

struct Sum {
  void* comm;
  float* receive;
  size_t count;
};
struct Registered {
  void* data;
  size_t bytes;
  void* now;
};

class Mutant : public Coll {
 public:
  Mutant(Coll* inner, CollFault fault) : inner_(inner), fault_(fault) {}

  int version() const override { return inner_->version(); }
  const char* name() const override { return inner_->name(); }
  Result init(void** context, uint64_t comm_id) override { return inner_->init(context, comm_id); }
  Result finalize(void* context) override { return inner_->finalize(context); }
  Result devices(int* count) override { return inner_->devices(count); }
  Result get_properties(int device, nccl::PropertiesV11* properties) override {
    return inner_->get_properties(device, properties);
  }
  Result listen(void* context, int device, void* handle, void** comm) override {
    return inner_->listen(context, device, handle, comm);
  }
  Result connect(void** handles, int ranks, int rank, void* listen_comm, void** comm) override {
    ranks_ = ranks;
    return inner_->connect(handles, ranks, rank, listen_comm, comm);
  }
  Result reduce_support(int type, int reduction, int* supported) override {
    const Result result = inner_->reduce_support(type, reduction, supported);
    if (fault_ == CollFault::supports_all) *supported = 1;
    return result;
  }

  Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory) override {
    const Result result = inner_->register_memory(comm, data, bytes, type, memory);
    if (fault_ == CollFault::lost_registration) {
      (void)inner_->deregister_memory(comm, *memory);
      *memory = nullptr;
    }
    if (fault_ == CollFault::forgotten_errors) {
      const std::lock_guard lock(mutex_);
      registered_[*memory] = {data, bytes, *memory};
    }
    return result;
  }
  Result deregister_memory(void* comm, void* memory) override {
    return inner_->deregister_memory(comm, current(memory));
  }

  Result iallreduce(void* comm, void* send, void* receive, size_t count, int type, int reduction,
                    void* send_memory, void* receive_memory, void** request) override {
    const bool now = ++calls_ > kEarlier;
    if (fault_ == CollFault::request_unwritten && now) return nccl::kSuccess;
    if (fault_ == CollFault::lost_call && send_memory != receive_memory) {
      lost_bytes_ = static_cast<int>(count * sizeof(float));
      *request = &lost_;
      return nccl::kSuccess;
    }
    if (fault_ == CollFault::forgotten_errors && send_memory != receive_memory) {
      renew(comm, send_memory);
    }
    const Result result =
        inner_->iallreduce(comm, send, receive, count, type, reduction, current(send_memory),
                           current(receive_memory), request);
    const std::lock_guard lock(mutex_);
    if (*request != nullptr) sums_[*request] = {comm, static_cast<float*>(receive), count};
    return result;
  }
  Result iallgather(void* comm, void* send, void* receive, void* send_memory, void* receive_memory,
                    const Window& window, void** request) override {
    return inner_->iallgather(comm, send, receive, send_memory, receive_memory, window, request);
  }
  Result ireduce_scatter(void* comm, void* send, void* receive, void* send_memory,
                         void* receive_memory, const Window& window, int type, int reduction,
                         void** request) override {
    return inner_->ireduce_scatter(comm, send, receive, send_memory, receive_memory, window, type,
                                   reduction, request);
  }
  Result iflush(void* comm, void* data, int bytes, void* memory, void** request) override {
    return inner_->iflush(comm, data, bytes, current(memory), request);
  }

  Result test(void* request, int* done, int* bytes) override {
    const int before = *done;
    if (request == &lost_) {
      *done = 1;
      *bytes = lost_bytes_;
      return nccl::kSuccess;
    }
    const Result result = inner_->test(request, done, bytes);
    Sum sum{};
    {
      const std::lock_guard lock(mutex_);
      const auto known = sums_.find(request);
      if (known == sums_.end()) return result;
      sum = known->second;
      if (*done == 1) sums_.erase(known);
    }
    if (fault_ == CollFault::done_unwritten && *done == 0) {
      *done = before;
    } else if (*done == 1) {
      spoil(sum, bytes);
    }
    return result;
  }
  Result close_coll(void* comm) override {
    return fault_ == CollFault::left_open ? nccl::kSuccess : inner_->close_coll(comm);
  }
  Result close_listen(void* comm) override { return inner_->close_listen(comm); }

 private:
  void spoil(const Sum& sum, int* bytes) const {
    if (fault_ == CollFault::wrong_size) *bytes /= 2;
    if (fault_ == CollFault::long_sum && sum.count != 4096) sum.receive[sum.count] = 0;
    if (fault_ != CollFault::mean) return;
    for (size_t i = 0; i < sum.count; i++) sum.receive[i] /= static_cast<float>(ranks_);
  }
  void* current(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto known = registered_.find(memory);
    return known == registered_.end() ? memory : known->second.now;
  }
  void renew(void* comm, void* memory) {
    const std::lock_guard lock(mutex_);
    Registered& known = registered_[memory];
    if (inner_->deregister_memory(comm, known.now) != nccl::kSuccess) return;
    (void)inner_->register_memory(comm, known.data, known.bytes, nccl::kPointerHost, &known.now);
  }

  Coll* inner_;
  CollFault fault_;
  std::atomic<int> ranks_{1}, calls_{0}, lost_bytes_{0};
  int lost_ = 0;
  std::mutex mutex_;
  std::map<void*, Sum> sums_;
  std::map<void*, Registered> registered_;
};

}  // namespace

const char* coll_fault_name(CollFault fault) {
  static const char* const names[kCollFaults] = {"none",
                                                 "request_unwritten",
                                                 "done_unwritten",
                                                 "lost_call",
                                                 "wrong_size",
                                                 "supports_all",
                                                 "mean",
                                                 "long_sum",
                                                 "lost_registration",
                                                 "forgotten_errors",
                                                 "left_open"};
  return names[static_cast<int>(fault)];
}

std::unique_ptr<Coll> mutate(Coll* inner, CollFault fault) {
  return std::make_unique<Mutant>(inner, fault);
}

}  // namespace bitrail::test
