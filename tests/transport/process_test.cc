// Ranks as processes, some of which die: survivors never crash, never hang in closing, and between
// hosts learn of it. "Hosts" are IPC namespaces here, which both UCX and BitRail take for such.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "runtime/common/clock.h"
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Request;

// What parent and child share: their handles, and how far they are.
struct Shared {
  transport::Handle handles[2];
  std::atomic<int> listening{0};
  std::atomic<int> stage{0};
};

struct Case {
  const char* name;
  const char* ucx_tls;
  bool hosts;  // each in its own
  size_t bytes;
};

class Death : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Transports, Death,
    testing::Values(Case{"small", "", false, 100}, Case{"long", "", false, 3'000'000},
                    Case{"long_without_cma", "^cma", false, 3'000'000},
                    Case{"tcp", "tcp,self", false, 3'000'000}, Case{"hosts_small", "", true, 100},
                    Case{"hosts_long", "", true, 3'000'000}),
    [](const testing::TestParamInfo<Case>& info_) { return std::string(info_.param.name); });

// Connects with the other process; false when that fails.
bool set_up(Shared* shared, const Case& c, int rank, Side* side) {
  if (c.hosts && unshare(CLONE_NEWIPC) != 0) return false;
  const TlsChoice choice(c.ucx_tls);
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  transport::Options options = options_for({c.name, c.ucx_tls, 0, 0}, rank);
  options.identity.job_id = c.name;
  if (!transport::open("ucx", options, &side->context).ok() ||
      !side->context->listen(0, &side->handle, &side->listener).ok()) {
    return false;
  }
  shared->handles[rank] = side->handle;
  shared->listening++;
  while (shared->listening < 2) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  std::unique_ptr<transport::Context::Connecting> pending;
  while (side->sender == nullptr || side->receiver == nullptr) {
    if (deadline.passed()) return false;
    if (side->sender == nullptr) {
      const Status status = side->context->connect(0, shared->handles[1 - rank], {1 - rank},
                                                   deadline, &pending, &side->sender);
      if (!status.ok()) {
        fprintf(stderr, "rank %d: %s\n", rank, status.text().c_str());
        return false;
      }
    }
    if (side->receiver == nullptr && !side->listener->accept(&side->receiver, &side->peer).ok()) {
      return false;
    }
    side->context->progress();
  }
  return true;
}

// Rank `rank`'s life. Rank 1 gets one message, says so and stays until it is killed; rank 0 sends
// and receives on until that has happened, and for a while after.
int live(Shared* shared, const Case& c, int rank) {
  Side side;
  if (!set_up(shared, c, rank, &side)) return 10;
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  const std::vector<uint8_t> data = pattern(c.bytes, 1);
  std::vector<uint8_t> got(c.bytes);
  Request first;
  if (rank == 1) {
    receive(side.receiver.get(), got.data(), got.size(), 1, &first);
    while (!first.done) side.context->progress();
    // For the survivor to receive when this process is gone.
    Request last;
    send(side.sender.get(), data.data(), data.size(), 4, 0, &last);
    for (int i = 0; i < 1000; i++) side.context->progress();
    shared->stage = first.status == BITRAIL_OK && got == data ? 1 : -1;
    while (!deadline.passed()) side.context->progress();
    return 11;
  }
  send(side.sender.get(), data.data(), data.size(), 1, 0, &first);
  while (!first.done) {
    if (deadline.passed()) return 12;
    side.context->progress();
  }
  constexpr int kMore = 200;
  std::vector<Request> sends(kMore);
  Request waiting;
  receive(side.receiver.get(), got.data(), got.size(), 2, &waiting);
  bool told = false;
  int sent = 0;
  const Deadline after = Deadline::in_ms(500);
  while (!after.passed()) {
    side.context->progress();
    if (sent == kMore) continue;
    bool accepted = false;
    const Status status =
        side.sender->isend(data.data(), data.size(), 3, 0, nullptr, &sends[sent], &accepted);
    if (!status.ok()) {
      told = status.code() == BITRAIL_ERR_PEER_LOST;
      break;
    }
    if (accepted) sent++;
  }
  // The dead peer's last message: there or not, but an end comes to it.
  Request last;
  std::vector<uint8_t> last_got(c.bytes);
  transport::Buffer buffer;
  buffer.data = last_got.data();
  buffer.bytes = last_got.size();
  buffer.tag = 4;
  bool posted = false;
  if (side.receiver->irecv(1, &buffer, &last, &posted).ok() && posted) {
    const Deadline enough = Deadline::in_ms(100);
    while (!last.done && !enough.passed()) side.context->progress();
    if (last.done && last.status == BITRAIL_OK && last_got != data) return 18;
    if (!c.hosts && c.bytes < 1000 && !last.done) return 19;
  }
  if (c.hosts) {
    while (!waiting.done && !deadline.passed()) side.context->progress();
    if (waiting.status != BITRAIL_ERR_PEER_LOST) return 13;
    if (!told && sent < kMore) return 14;
  }
  const int64_t start = now_ns();
  side.receiver.reset();
  side.sender.reset();
  side.context.reset();
  if (!waiting.done || !last.done) return 15;
  for (int i = 0; i < sent; i++) {
    if (!sends[i].done) return 16;
  }
  return now_ns() - start < 15'000'000'000 ? 0 : 17;
}

TEST_P(Death, SurvivesAKilledPeer) {
  const Case& c = GetParam();
  if (c.hosts && geteuid() != 0) GTEST_SKIP() << "namespaces need root";
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared;
  pid_t ranks[2];
  for (int rank = 0; rank < 2; rank++) {
    ranks[rank] = fork();
    ASSERT_GE(ranks[rank], 0);
    if (ranks[rank] == 0) _exit(live(shared, c, rank));
  }
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  int status = 0;
  bool early = false;
  while (shared->stage == 0 && !deadline.passed() && !early) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    early = waitpid(ranks[0], &status, WNOHANG) == ranks[0];
  }
  EXPECT_EQ(shared->stage, 1);
  kill(ranks[1], SIGKILL);
  waitpid(ranks[1], nullptr, 0);
  if (!early) waitpid(ranks[0], &status, 0);
  munmap(memory, sizeof(Shared));
  ASSERT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace bitrail::test
