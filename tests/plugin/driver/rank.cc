#include "tests/plugin/driver/rank.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/plugin/driver/stream.h"
#include "tests/support/processes.h"

namespace bitrail::test {
namespace {

constexpr std::array kProtocols = {Protocol::simple, Protocol::ll, Protocol::grouped};
static_assert(kProtocols.size() == kMaxConnections);

class Rank {
 public:
  Rank(Net& net, const RankOptions& options, int rank, Board* board)
      : net_(net),
        options_(options),
        rank_(rank),
        board_(board),
        call_{Deadline::in_ms(options.limit_ms), options.call_ms * 1'000'000} {}

  std::string run() {
    std::string text;
    try {
      start();
      std::thread service([this, &text] { text = guarded([this] { serve(); }); });
      service.join();
      call_("finalize", [this] { return net_.finalize(context_); });
    } catch (const Broken& broken) {
      text = broken.what();
    }
    if (!text.empty()) fail(text);
    return text;
  }

 private:
  template <typename Body>
  std::string guarded(Body body) {
    try {
      body();
    } catch (const Broken& broken) {
      fail(broken.what());
      return broken.what();
    }
    return {};
  }

  void fail(const std::string& text) {
    if (board_->failed.fetch_add(1) == 0) {
      (void)snprintf(board_->text, sizeof(board_->text), "rank %d: %s", rank_, text.c_str());
    }
  }

  // The application's thread.
  void start() {
    call_("init", [this] { return net_.init(&context_, options_.comm_id); });
    int count = -1;
    call_("devices", [&] { return net_.devices(&count); });
    require(count > 0, "no device");
    nccl::PropertiesV12 properties;
    call_("getProperties", [&] { return net_.get_properties(0, &properties); });
    require(properties.max_receives == kMaxGroup, "maxRecvs is not 8");
    require((properties.pointer_support & nccl::kPointerHost) != 0, "no host memory");
  }

  // The service thread.
  void serve() {
    std::string text = guarded([this] {
      for (int i = 0; i < kMaxConnections; i++) listen(i);
      board_->listening++;
      wait([this] { return board_->listening >= options_.ranks; });
      connect_all();
      for (int i = 0; i < kMaxConnections; i++) prepare(i);
      std::thread progress([this] { progress_text_ = guarded([this] { progress_all(); }); });
      const std::string wrong = guarded([this] { register_meanwhile(); });
      progress.join();
      if (!wrong.empty()) throw Broken(wrong);
      if (!progress_text_.empty()) throw Broken(progress_text_);
      if (options_.abort_rank >= 0) return;
      board_->done++;
      wait([this] { return board_->done >= options_.ranks; });
    });
    close_all();
    if (!text.empty()) throw Broken(text);
  }

  template <typename Done>
  void wait(Done done) {
    while (!done()) {
      require(!call_.deadline.passed(), "waiting for the other ranks: no end within the limit");
      require(board_->failed == 0, "another rank failed");
      sched_yield();
    }
  }

  void listen(int index) {
    Handle& handle = board_->handles[rank_][index];
    handle.fill(0xee);
    call_("listen", [&] { return net_.listen(context_, 0, handle.data(), &listeners_[index]); });
    require(listeners_[index] != nullptr, "listen gives no comm");
  }

  void connect_all() {
    const int next = (rank_ + 1) % options_.ranks;
    for (int i = 0; i < kMaxConnections; i++) handles_[i] = board_->handles[next][i];
    wait([this] {
      bool all = true;
      for (int i = 0; i < kMaxConnections; i++) {
        void** send = &sends_[i].comm;
        void** receive = &receives_[i].comm;
        if (*send == nullptr) {
          call_("connect", [&] { return net_.connect(context_, 0, handles_[i].data(), send); });
        }
        if (*receive == nullptr) {
          call_("accept", [&] { return net_.accept(listeners_[i], receive); });
          if (*receive != nullptr) close_listener(i);
        }
        all = all && *send != nullptr && *receive != nullptr;
      }
      return all;
    });
  }

  void close_listener(int index) {
    void* comm = listeners_[index];
    listeners_[index] = nullptr;
    call_("closeListen", [&] { return net_.close_listen(comm); });
  }

  void prepare(int index) {
    const auto own = static_cast<uint64_t>(rank_);
    const auto before = static_cast<uint64_t>((rank_ + options_.ranks - 1) % options_.ranks);
    prepare_stream(&sends_[index], kProtocols[static_cast<size_t>(index)], own);
    prepare_stream(&receives_[index], kProtocols[static_cast<size_t>(index)], before);
  }

  void prepare_stream(Stream* stream, Protocol protocol, uint64_t sender) {
    stream->net = &net_;
    stream->protocol = protocol;
    stream->seed = (options_.seed * 64 + sender) * 4 + static_cast<uint64_t>(protocol);
    stream->steps = count_steps(stream->seed, protocol, options_.bytes / kMaxConnections);
    stream->buffer.resize(kSteps * slot_bytes(protocol) + 1);
    call_("regMr", [&] {
      return net_.register_memory(stream->comm, stream->buffer.data(), stream->buffer.size(),
                                  nccl::kPointerHost, &stream->memory);
    });
  }

  // User buffers, while the progress thread uses the same connections.
  void register_meanwhile() {
    std::vector<uint8_t> user(100'001);
    for (int i = 0; i < 32; i++) {
      void* memory = nullptr;
      void* comm = i % 2 == 0 ? sends_[0].comm : receives_[0].comm;
      call_("regMr", [&] {
        return net_.register_memory(comm, user.data() + i, user.size() - 64, nccl::kPointerHost,
                                    &memory);
      });
      require(memory != nullptr, "regMr gives no handle");
      sched_yield();
      call_("deregMr", [&] { return net_.deregister_memory(comm, memory); });
    }
  }

  // The progress thread.
  void progress_all() {
    const bool aborts = options_.abort_rank >= 0;
    const Deadline patience = aborts ? Deadline::in_ms(options_.abort_ms) : Deadline{};
    for (;;) {
      bool moved = false, complete = true;
      for (int i = 0; i < kMaxConnections; i++) {
        try {
          moved |= advance_send(&sends_[i], call_);
          moved |= advance_receive(&receives_[i], call_);
        } catch (const Refused&) {
          if (!aborts || rank_ == options_.abort_rank) throw;
          return;
        }
        complete = complete && sends_[i].complete() && receives_[i].complete();
      }
      if (complete) return;
      if (rank_ == options_.abort_rank && sends_[0].posted >= options_.abort_steps) return;
      if (aborts && patience.passed()) return;
      require(!call_.deadline.passed(), "the transfer does not end within the limit");
      require(board_->failed == 0, "another rank failed");
      if (!moved) sched_yield();
    }
  }

  void close_all() {
    for (int i = 0; i < kMaxConnections; i++) {
      close_stream(&sends_[i], true);
      close_stream(&receives_[i], false);
      if (listeners_[i] != nullptr) close_listener(i);
    }
  }

  void close_stream(Stream* stream, bool send) {
    if (stream->memory != nullptr) {
      call_("deregMr", [&] { return net_.deregister_memory(stream->comm, stream->memory); });
    }
    if (stream->comm == nullptr) return;
    if (send) {
      call_("closeSend", [&] { return net_.close_send(stream->comm); });
    } else {
      call_("closeRecv", [&] { return net_.close_receive(stream->comm); });
    }
    stream->buffer = {};  // nobody may write to it any more
  }

  Net& net_;
  RankOptions options_;
  int rank_;
  Board* board_;
  Caller call_;
  void* context_ = nullptr;
  void* listeners_[kMaxConnections] = {};
  Handle handles_[kMaxConnections] = {};  // as NCCL keeps them: the same memory at each poll
  Stream sends_[kMaxConnections], receives_[kMaxConnections];
  std::string progress_text_;
};

std::string verdict(const Board& board) {
  return board.failed == 0 ? std::string() : std::string(board.text);
}

}  // namespace

std::string run_rank(Net& net, const RankOptions& options, int rank, Board* board) {
  return Rank(net, options, rank, board).run();
}

std::string run_threads(Net& net, const RankOptions& options, Board* board) {
  std::vector<std::thread> ranks;
  ranks.reserve(static_cast<size_t>(options.ranks));
  for (int rank = 0; rank < options.ranks; rank++) {
    ranks.emplace_back([&, rank] { run_rank(net, options, rank, board); });
  }
  for (std::thread& thread : ranks) thread.join();
  return verdict(*board);
}

std::string run_processes(const std::string& file, int version, const RankOptions& options,
                          Board* board) {
  Processes ranks(options.ranks, [&](int rank) {
    const File plugin(file);
    const std::unique_ptr<Net> net = plugin.net(version);
    if (net == nullptr) return 2;
    return run_rank(*net, options, rank, board).empty() ? 0 : 1;
  });
  std::string text;
  for (int rank = 0; rank < options.ranks; rank++) {
    const Finished finished = ranks.wait(rank, Deadline::in_ms(options.limit_ms + 10'000));
    if (finished.in_time && finished.code == 0) continue;
    text += fmt::format("rank {} ended with {}: {}", rank, finished.code, finished.output);
  }
  return text.empty() ? verdict(*board) : text + verdict(*board);
}

}  // namespace bitrail::test
