// The plugin's table of version 11, called as NCCL calls it: requests in order, each tested until
// it is done.
#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/core.h>

#include "plugin/abi/net_v11.h"
#include "runtime/common/clock.h"
#include "tools/bench/pipes/pipe.h"

namespace bitrail::bench {
namespace {

constexpr int kEmptyTests = 500;  // as `bitrail perf`: then the processor is given away
constexpr int kTag = 1, kSwapTag = 2;
constexpr int64_t kPatienceMs = 60'000;

void told(const char* call, nccl::Result result) {
  if (result != nccl::kSuccess) die(fmt::format("{} gives {}", call, static_cast<int>(result)));
}

void show(nccl::LogLevel level, unsigned long /*flags*/, const char* /*file*/, int /*line*/,
          const char* format, ...) __attribute__((format(printf, 5, 6)));
void show(nccl::LogLevel level, unsigned long /*flags*/, const char* /*file*/, int /*line*/,
          const char* format, ...) {
  if (level != nccl::kLogWarn) return;
  va_list arguments;
  va_start(arguments, format);
  (void)vfprintf(stderr, format, arguments);
  va_end(arguments);
  (void)fputc('\n', stderr);
}

}  // namespace

// With plain names: callgrind collects between their begin and end.
extern "C" {
__attribute__((noipa)) void bench_isend(const nccl::NetV11* table, void* comm, void* data,
                                        size_t bytes, int tag, void* memory, void** request) {
  told("isend", table->isend(comm, data, bytes, tag, memory, nullptr, request));
}
__attribute__((noipa)) int bench_test(const nccl::NetV11* table, void* request) {
  int done = 0, size = 0;
  told("test", table->test(request, &done, &size));
  return done;
}
}

namespace {

class Table : public Pipe {
 public:
  explicit Table(const Setting& setting) : setting_(setting), flights_(setting.window) {
    void* file = dlopen(setting.file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) die(dlerror());
    table_ = static_cast<const nccl::NetV11*>(dlsym(file, "ncclNetPlugin_v11"));
    must(table_ != nullptr, "the file has no table of version 11");
    told("init", table_->init(&context_, 1, nullptr, show, nullptr));
    int devices = 0;
    told("devices", table_->devices(&devices));
    must(devices > 0, "no device");
    connect();
  }
  ~Table() override {
    if (send_memory_ != nullptr) (void)table_->deregister_memory(sender_, send_memory_);
    if (receive_memory_ != nullptr) (void)table_->deregister_memory(receiver_, receive_memory_);
    (void)table_->close_send(sender_);
    (void)table_->close_receive(receiver_);
    (void)table_->finalize(context_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void swap() override {
    char out = 0, in = 0;
    void* receiving = nullptr;
    void* sending = nullptr;
    post_receive(&in, 1, kSwapTag, nullptr, &receiving);
    post_send(&out, 1, kSwapTag, nullptr, &sending);
    wait(receiving);
    wait(sending);
  }

  void send(const void* data, size_t count) override {
    void* out = const_cast<void*>(data);
    told("regMr", register_once(sender_, out, &send_memory_));
    const size_t window = std::min(setting_.window, count);
    for (size_t i = 0; i < count + window; i++) {
      void** request = &flights_[i % window];
      if (i >= window) wait(*request);
      if (i < count) post_send(out, setting_.bytes, kTag, send_memory_, request);
    }
  }

  void prepare(void* data, size_t count) override {
    told("regMr", register_once(receiver_, data, &receive_memory_));
    for (size_t i = 0; i < std::min(setting_.window, count); i++) {
      post_receive(data, setting_.bytes, kTag, receive_memory_, &flights_[i]);
    }
  }
  int64_t receive(void* data, size_t count) override {
    const size_t window = std::min(setting_.window, count);
    for (size_t i = 0; i < count; i++) {
      void** request = &flights_[i % window];
      wait(*request);
      if (i + window < count) {
        post_receive(data, setting_.bytes, kTag, receive_memory_, request);
      }
    }
    return now_ns();
  }

 private:
  void connect() {
    using Handle = std::array<char, nccl::kHandleBytes>;
    Handle handle;
    void* listener = nullptr;
    told("listen", table_->listen(context_, 0, handle.data(), &listener));
    publish(setting_, "handle", {handle.data(), handle.size()});
    const std::string theirs = await(setting_, "handle", 1 - setting_.rank);
    must(theirs.size() == handle.size(), "the peer's handle is short");
    memcpy(handle.data(), theirs.data(), handle.size());
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    while (sender_ == nullptr || receiver_ == nullptr) {
      must(!deadline.passed(), "set-up hangs");
      nccl::NetDeviceHandle* none = nullptr;
      if (sender_ == nullptr) {
        told("connect", table_->connect(context_, 0, handle.data(), &sender_, &none));
      }
      if (receiver_ == nullptr) told("accept", table_->accept(listener, &receiver_, &none));
      sched_yield();
    }
    (void)table_->close_listen(listener);
  }

  nccl::Result register_once(void* comm, void* data, void** memory) {
    if (*memory != nullptr) return nccl::kSuccess;
    return table_->register_memory(comm, data, setting_.bytes, nccl::kPointerHost, memory);
  }

  void post_send(void* data, size_t bytes, int tag, void* memory, void** request) {
    for (Wait wait;;) {
      bench_isend(table_, sender_, data, bytes, tag, memory, request);
      if (*request != nullptr) return;
      wait.look();
    }
  }
  void post_receive(void* data, size_t bytes, int tag, void* memory, void** request) {
    for (Wait wait;;) {
      told("irecv", table_->irecv(receiver_, 1, &data, &bytes, &tag, &memory, nullptr, request));
      if (*request != nullptr) return;
      wait.look();
    }
  }
  void wait(void* request) {
    for (Wait wait; bench_test(table_, request) == 0;) wait.look();
  }

  // Looks without a result.
  struct Wait {
    int empty = 0;
    Deadline deadline;
    void look() {
      if (++empty < kEmptyTests) return;
      empty = 0;
      if (deadline.at_ns == INT64_MAX) deadline = Deadline::in_ms(kPatienceMs);
      must(!deadline.passed(), "nothing moves");
      sched_yield();
    }
  };

  Setting setting_;
  const nccl::NetV11* table_ = nullptr;
  void* context_ = nullptr;
  void* sender_ = nullptr;
  void* receiver_ = nullptr;
  void* send_memory_ = nullptr;
  void* receive_memory_ = nullptr;
  std::vector<void*> flights_;
};

}  // namespace

std::unique_ptr<Pipe> open_table(const Setting& setting) {
  return std::make_unique<Table>(setting);
}

}  // namespace bitrail::bench
