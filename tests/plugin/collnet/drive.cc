#include "tests/plugin/collnet/drive.h"

#include <sched.h>

#include <cmath>
#include <cstdio>

#include "tests/plugin/driver/caller.h"
#include "tests/support/processes.h"
#include "tests/support/spawn.h"

namespace bitrail::test {
namespace {

// What *request is before a call: who leaves it, or hands it out, is noticed.
char g_unwritten;
void* unwritten() { return &g_unwritten; }

void ok(nccl::Result result, const char* name) {
  if (result != nccl::kSuccess) {
    throw Refused(fmt::format("{} gives code {}", name, static_cast<int>(result)));
  }
}

// Squared distance of the mean of the rounds from the sum, over the squared sum: without feedback
// it stays at about 0.3.
constexpr double kFeedback = 0.12;

// Small integers, so that sums are exact in whatever order.
float value(int rank, size_t i, int round) {
  return static_cast<float>((static_cast<int>(i % 97) + 3 * rank + 7 * round) % 61 - 30);
}
float total(int ranks, size_t i, int round) {
  float sum = 0;
  for (int rank = 0; rank < ranks; rank++) sum += value(rank, i, round);
  return sum;
}

class Drive {
 public:
  Drive(Coll& coll, const CollOptions& options, int rank, Board* board)
      : coll_(coll), options_(options), rank_(rank), board_(board) {}

  void run() {
    end_.join(&coll_, options_.ranks, rank_, options_.comm_id, board_, options_.limit_ms);
    ask();
    send_.resize(options_.count + 1);
    receive_.resize(options_.count + 1);
    send_memory_ = end_.register_floats(send_);
    receive_memory_ = end_.register_floats(receive_);
    for (int round = 0; round < options_.rounds; round++) {
      stage(round);
      reduce_user(round);
      gather(round);
      scatter(round);
    }
    if (options_.onebit) check_feedback();
    flush();
    ok(coll_.deregister_memory(end_.comm, send_memory_), "deregMr");
    ok(coll_.deregister_memory(end_.comm, receive_memory_), "deregMr");
    wait_for(&board_->done);
    void* closed = end_.comm;
    end_.comm = nullptr;
    ok(coll_.close_coll(closed), "closeColl");
    require(coll_.close_coll(closed) != nccl::kSuccess, "a closed comm is closed again");
  }

 private:
  void wait_for(std::atomic<int>* counter) const {
    counter->fetch_add(1);
    const Deadline deadline = Deadline::in_ms(options_.limit_ms);
    while (counter->load() < options_.ranks && board_->failed == 0) {
      if (deadline.passed()) throw Broken("the other ranks do not come");
      sched_yield();
    }
  }

  void ask() {
    int supported = -1;
    ok(coll_.reduce_support(nccl::kFloat32, nccl::kSum, &supported), "reduceSupport");
    require(supported == 1, "reduceSupport does not say yes to float sums");
    for (const int type : {nccl::kFloat32, nccl::kFloat8e4m3}) {
      supported = -1;
      ok(coll_.reduce_support(type, nccl::kProd, &supported), "reduceSupport");
      require(supported == 0, "reduceSupport does not say no to products");
    }
  }

  void finish(void* request, size_t bytes) {
    const nccl::Result result = end_.finish(request, bytes, options_.limit_ms);
    require(result != nccl::kInProgress, "test: no end within the limit");
    ok(result, "test");
  }

  // Both slots in flight at once. NCCL's counts there are whole slots.
  void stage(int round) {
    constexpr size_t kSlot = CollRank::kSlot;
    float* base = end_.staging.data();
    void* requests[2];
    for (size_t slot = 0; slot < 2; slot++) {
      for (size_t i = 0; i < kSlot; i++) base[slot * kSlot + i] = value(rank_, i + slot, round);
      requests[slot] = end_.reduce(base + slot * kSlot, base + (2 + slot) * kSlot, kSlot,
                                   end_.staging_memory, end_.staging_memory);
    }
    for (size_t slot = 0; slot < 2; slot++) {
      finish(requests[slot], kSlot * sizeof(float));
      for (size_t i = 0; i < kSlot; i++) {
        require(base[(2 + slot) * kSlot + i] == total(options_.ranks, i + slot, round),
                "a staged sum is wrong");
      }
    }
  }

  // The same values in each round with 1 bit, so that errors that are fed back average out.
  void reduce_user(int round) {
    const int seed = options_.onebit ? 0 : round;
    for (size_t i = 0; i < options_.count; i++) send_[i] = value(rank_, i, seed);
    receive_.back() = 12'345;
    void* request =
        end_.reduce(send_.data(), receive_.data(), options_.count, send_memory_, receive_memory_);
    finish(request, options_.count * sizeof(float));
    require(receive_.back() == 12'345, "a sum is longer than its buffer");
    if (options_.onebit) {
      sums_.resize(options_.count);
      for (size_t i = 0; i < options_.count; i++) sums_[i] += receive_[i];
      return;
    }
    for (size_t i = 0; i < options_.count; i++) {
      require(receive_[i] == total(options_.ranks, i, round), "a user's sum is wrong");
    }
  }

  void check_feedback() const {
    double off = 0, size = 0;
    for (size_t i = 0; i < options_.count; i++) {
      const double expected = total(options_.ranks, i, 0);
      off += std::pow(sums_[i] / options_.rounds - expected, 2);
      size += expected * expected;
    }
    if (off < kFeedback * size) return;
    throw Broken(
        fmt::format("the mean of compressed sums is off by {:.3f} of the sum", off / size));
  }

  // A window across the ranks' parts, then the whole.
  void gather(int round) {
    const size_t part = 1000, all = part * static_cast<size_t>(options_.ranks);
    part_.resize(part);
    window_.resize(all);
    for (size_t i = 0; i < part; i++) part_[i] = value(rank_, i, round);
    for (const size_t skip : {size_t{0}, size_t{300}}) {
      const size_t length = all - 2 * skip;
      const bool first = rank_ == 0;
      const Window window{part * sizeof(float), skip * sizeof(float), length * sizeof(float)};
      void* request = unwritten();
      ok(coll_.iallgather(end_.comm, part_.data() + (first ? skip : 0), window_.data(), nullptr,
                          nullptr, window, &request),
         "iallgather");
      require(request != nullptr && request != unwritten(), "iallgather gives no request");
      finish(request, length * sizeof(float));
      for (size_t i = 0; i < length; i++) {
        const size_t at = i + skip;
        require(window_[i] == value(static_cast<int>(at / part), at % part, round),
                "a gathered value is wrong");
      }
    }
  }

  void scatter(int round) {
    const size_t part = 1000, all = part * static_cast<size_t>(options_.ranks);
    part_.resize(part);
    window_.resize(all);
    for (const size_t skip : {size_t{0}, size_t{300}}) {
      const size_t length = all - 2 * skip;
      for (size_t i = 0; i < length; i++) window_[i] = value(rank_, i + skip, round);
      const Window window{part * sizeof(float), skip * sizeof(float), length * sizeof(float)};
      void* request = unwritten();
      ok(coll_.ireduce_scatter(end_.comm, window_.data(), part_.data(), nullptr, nullptr, window,
                               nccl::kFloat32, nccl::kSum, &request),
         "ireducescatter");
      require(request != nullptr && request != unwritten(), "ireducescatter gives no request");
      const bool first = rank_ == 0, last = rank_ == options_.ranks - 1;
      const size_t own = part - (first ? skip : 0) - (last ? skip : 0);
      finish(request, own * sizeof(float));
      const size_t begin = static_cast<size_t>(rank_) * part + (first ? skip : 0);
      for (size_t i = 0; i < own; i++) {
        require(part_[i] == total(options_.ranks, begin + i, round), "a scattered sum is wrong");
      }
    }
  }

  void flush() {
    void* request = unwritten();
    ok(coll_.iflush(end_.comm, receive_.data(), 64, receive_memory_, &request), "iflush");
    require(request != unwritten(), "iflush leaves *request as it was");
    int done = -1;
    if (request != nullptr) ok(coll_.test(request, &done, nullptr), "test");
  }

  Coll& coll_;
  const CollOptions& options_;
  int rank_;
  Board* board_;
  std::vector<float> send_, receive_, window_, part_;
  std::vector<double> sums_;
  void* send_memory_ = nullptr;
  void* receive_memory_ = nullptr;
  CollRank end_;  // goes first: nothing writes to the buffers any more
};

}  // namespace

CollRank::~CollRank() {
  if (comm != nullptr) (void)coll->close_coll(comm);
  if (coll != nullptr) (void)coll->finalize(context);
}

void CollRank::join(Coll* with, int ranks, int rank, uint64_t comm_id, Board* board,
                    int64_t limit_ms) {
  coll = with;
  ok(coll->init(&context, comm_id), "init");
  int count = -1;
  ok(coll->devices(&count), "devices");
  require(count == 1, "devices gives another number than 1");
  void* listener = nullptr;
  ok(coll->listen(context, 0, board->handles[rank][0].data(), &listener), "listen");
  board->listening++;
  const Deadline deadline = Deadline::in_ms(limit_ms);
  while (board->listening.load() < ranks && board->failed == 0) {
    if (deadline.passed()) throw Broken("the other ranks do not listen");
    sched_yield();
  }
  void* handles[kMaxBoardRanks];
  for (int i = 0; i < ranks; i++) handles[i] = board->handles[i][0].data();
  const nccl::Result result = coll->connect(handles, ranks, rank, listener, &comm);
  ok(coll->close_listen(listener), "closeListen");
  ok(result, "connect");
  require(comm != nullptr, "connect gives no comm");
  // As NCCL: for each direction.
  for (int direction = 0; direction < 2; direction++) staging_memory = register_floats(staging);
}

void* CollRank::register_floats(std::vector<float>& values) const {
  void* memory = unwritten();
  ok(coll->register_memory(comm, values.data(), values.size() * sizeof(float), nccl::kPointerHost,
                           &memory),
     "regMr");
  require(memory != nullptr && memory != unwritten(), "regMr gives no handle");
  return memory;
}

void* CollRank::reduce(float* send, float* receive, size_t count, void* send_memory,
                       void* receive_memory) const {
  const Deadline deadline = Deadline::in_ms(60'000);
  while (true) {
    void* request = unwritten();
    ok(coll->iallreduce(comm, send, receive, count, nccl::kFloat32, nccl::kSum, send_memory,
                        receive_memory, &request),
       "iallreduce");
    require(request != unwritten(), "iallreduce leaves *request as it was");
    if (request != nullptr) return request;
    if (deadline.passed()) throw Broken("iallreduce never has room");
    sched_yield();
  }
}

nccl::Result CollRank::finish(void* request, size_t bytes, int64_t ms) const {
  const Deadline deadline = Deadline::in_ms(ms);
  while (!deadline.passed()) {
    int done = -1, size = -1;
    const nccl::Result result = coll->test(request, &done, &size);
    require(done == 0 || done == 1, "test leaves *done as it was");
    if (result != nccl::kSuccess) return result;
    if (done == 1) {
      require(size >= 0 && static_cast<size_t>(size) == bytes, "test tells a wrong size");
      return result;
    }
    sched_yield();
  }
  return nccl::kInProgress;
}

std::string drive_coll(Coll& coll, const CollOptions& options, int rank, Board* board) {
  std::string text;
  try {
    Drive(coll, options, rank, board).run();
  } catch (const Broken& broken) {
    text = fmt::format("rank {}: {}", rank, broken.what());
    if (board->failed.fetch_add(1) == 0) {
      (void)snprintf(board->text, sizeof(board->text), "%s", text.c_str());
    }
  }
  return text;
}

std::string drive_threads(Coll& coll, const CollOptions& options, Board* board) {
  spawn(options.ranks, [&](int rank) { (void)drive_coll(coll, options, rank, board); });
  return board->failed == 0 ? "" : board->text;
}

std::string drive_processes(const std::string& file, int version, const CollOptions& options,
                            Board* board) {
  Processes ranks(options.ranks, [&](int rank) {
    const std::unique_ptr<Coll> coll = load_coll(file, version);
    return coll != nullptr && drive_coll(*coll, options, rank, board).empty() ? 0 : 1;
  });
  std::string text;
  for (int rank = 0; rank < options.ranks; rank++) {
    const Finished finished = ranks.wait(rank, Deadline::in_ms(2 * options.limit_ms));
    if (finished.code == 0 && finished.in_time) continue;
    text += fmt::format("rank {} ends with {}: {}{}\n", rank, finished.code, board->text,
                        finished.output);
  }
  return text;
}

}  // namespace bitrail::test
