// Communicators that come and go: several at a time, again and again, given up half way, with peers
// that never come; and what is left afterwards.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/plugin/driver/plan.h"
#include "tests/plugin/driver/rank.h"
#include "tests/plugin/session.h"
#include "tests/support/entries.h"
#include "tests/support/spawn.h"

namespace bitrail::test {
namespace {

class Lifecycle : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, Lifecycle, all_versions(), version_name);

// Only init() of a context reads the timeout anew.
class ContextLifecycle : public Lifecycle {};
INSTANTIATE_TEST_SUITE_P(Versions, ContextLifecycle, testing::Range(11, kNewest + 1), version_name);

// The profiler came with version 10.
class ProfilerLifecycle : public Lifecycle {};
INSTANTIATE_TEST_SUITE_P(Versions, ProfilerLifecycle, testing::Range(10, kNewest + 1),
                         version_name);

// BITRAIL_TIMEOUT_MS while it lives; read by init().
class Patience {
 public:
  explicit Patience(const char* ms) { setenv("BITRAIL_TIMEOUT_MS", ms, 1); }
  ~Patience() { unsetenv("BITRAIL_TIMEOUT_MS"); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
};

TEST_P(Lifecycle, FourCommunicatorsOnOneDevice) {
  const std::unique_ptr<Net> net = plugin_file().net(GetParam());
  Boards boards(4);
  spawn(4, [&](int index) {
    RankOptions options;
    options.bytes = 2 << 20;
    options.seed = static_cast<uint64_t>(index) + 1;
    options.comm_id = static_cast<uint64_t>(index) + 100;
    EXPECT_EQ(run_threads(*net, options, &boards[index]), "");
  });
}

TEST_P(Lifecycle, CreateDestroyCreate) {
  {
    const Session first(GetParam());  // what is kept for good is there now
  }
  const long threads = entries(kThreads), files = entries(kDescriptors);
  for (int round = 0; round < 3; round++) {
    const File file(PLUGIN_FILE);
    const std::unique_ptr<Net> net = file.net(GetParam());
    RankOptions options;
    options.bytes = 1 << 20;
    options.seed = static_cast<uint64_t>(round) + 1;
    Boards boards(1);
    EXPECT_EQ(run_threads(*net, options, &boards[0]), "");
  }
  EXPECT_LE(entries_left(kThreads, threads), threads);
  EXPECT_LE(entries_left(kDescriptors, files), files);
}

TEST_P(Lifecycle, AbortWithRequestsInFlight) {
  const std::unique_ptr<Net> net = plugin_file().net(GetParam());
  for (int aborting = 0; aborting < 2; aborting++) {
    RankOptions options;
    options.bytes = 64 << 20;
    options.abort_rank = aborting;
    Boards boards(1);
    EXPECT_EQ(run_threads(*net, options, &boards[0]), "");
  }
  RankOptions again;
  again.bytes = 1 << 20;
  Boards boards(1);
  EXPECT_EQ(run_threads(*net, again, &boards[0]), "");  // the process is not spoiled
  take_warnings();
}

TEST_P(Lifecycle, SeveralAcceptsOnOneListener) {
  Session session(GetParam());
  void* senders[3] = {};
  void* receivers[3] = {};
  for (int i = 0; i < 3; i++) session.connect(&senders[i], &receivers[i]);
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(session.net->close_send(senders[i]), nccl::kSuccess);
    EXPECT_EQ(session.net->close_receive(receivers[i]), nccl::kSuccess);
  }
}

TEST_P(ContextLifecycle, PeerNeverComes) {
  const Patience patience("200");
  const Session session(GetParam());
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  nccl::Result result = nccl::kSuccess;
  void* comm = nullptr;
  while (result == nccl::kSuccess && !deadline.passed()) {
    result = session.net->accept(session.listener, &comm);
    ASSERT_EQ(comm, nullptr);
  }
  EXPECT_EQ(result, nccl::kRemoteError);
  const std::vector<std::string> warnings = take_warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("BITRAIL_TIMEOUT_MS"), std::string::npos) << warnings[0];
}

// A port where somebody listens who never answers, and one where nobody does.
TEST_P(ContextLifecycle, PeerIsMuteOrGone) {
  const Patience patience("200");
  Session session(GetParam());
  const int mute = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(mute, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(getsockname(mute, reinterpret_cast<sockaddr*>(&address), &length), 0);
  for (const bool listening : {false, true}) {
    if (listening) {
      ASSERT_EQ(listen(mute, 4), 0);
    }
    // The transport's handle begins at 16: magic, version, kind, nonce, family, port, address.
    Handle handle = session.handle;
    const uint16_t family = 4, port = ntohs(address.sin_port);
    memcpy(handle.data() + 32, &family, 2);
    memcpy(handle.data() + 34, &port, 2);
    memcpy(handle.data() + 40, &address.sin_addr, 4);
    nccl::Result result = nccl::kSuccess;
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    void* comm = nullptr;
    while (result == nccl::kSuccess && !deadline.passed()) {
      result = session.net->connect(session.context, 0, handle.data(), &comm);
      ASSERT_EQ(comm, nullptr);
    }
    EXPECT_EQ(result, nccl::kRemoteError);
    EXPECT_EQ(take_warnings().size(), 1U);
  }
  close(mute);
}

// NCCL frees a receive side that never finished without closing its listener.
TEST_P(Lifecycle, FinalizeReapsWhatIsHalfOpen) {
  Session session(GetParam());
  Handle copy = session.handle;
  void* comm = nullptr;
  ASSERT_EQ(session.net->connect(session.context, 0, copy.data(), &comm), nccl::kSuccess);
  if (comm != nullptr) session.sender = comm;
  if (GetParam() >= 11) {
    session.listener = session.sender = nullptr;  // forgotten
  }
}

TEST_P(Lifecycle, FinalizeOfUnknownContexts) {
  const Session session(GetParam());
  int other = 0;
  EXPECT_EQ(session.net->finalize(nullptr), nccl::kSuccess);
  EXPECT_EQ(session.net->finalize(&other), nccl::kSuccess);
}

// A message that was accepted arrives though its sender's thread never comes back.
TEST_P(Lifecycle, AcceptedMessagesArriveWithoutTheSender) {
  Session session(GetParam());
  session.connect();
  constexpr size_t kBytes = 8 << 10;
  std::vector<uint8_t> out(kBytes * 16), in(kBytes * 16);
  fill(out.data(), out.size(), 5);
  std::vector<void*> receives;
  for (size_t i = 0; i < 16; i++) ASSERT_NE(session.send(&out[i * kBytes], kBytes, 3), nullptr);
  for (size_t i = 0; i < 16; i++) receives.push_back(session.receive(&in[i * kBytes], kBytes, 3));
  for (void* request : receives) EXPECT_EQ(session.finish(request), nccl::kSuccess);
  EXPECT_TRUE(matches(in.data(), in.size(), 5));
}

TEST_P(ProfilerLifecycle, ProfilerEventsStopAsOftenAsTheyStart) {
  const std::unique_ptr<Net> net = plugin_file().net(GetParam());
  const Events before = profiler_events();
  RankOptions options;
  options.bytes = 1 << 20;
  Boards boards(1);
  EXPECT_EQ(run_threads(*net, options, &boards[0]), "");
  const Events after = profiler_events();
  EXPECT_GT(after.started, before.started);
  EXPECT_EQ(after.started - before.started, after.stopped - before.stopped);
}

}  // namespace
}  // namespace bitrail::test
