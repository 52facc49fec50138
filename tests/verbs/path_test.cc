// What a message costs beside its work: nothing is allocated, no lock of the C library is taken and
// no system call is made once a connection is warm. Long messages come from registered memory.
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>

#define TEST_OVER_VERBS 1
#include "tests/transport/pair.h"

namespace {

std::atomic<bool> g_counting{false};
std::atomic<uint64_t> g_allocations{0}, g_locks{0};

void count(std::atomic<uint64_t>* counter) {
  if (g_counting.load(std::memory_order_relaxed)) counter->fetch_add(1);
}

}  // namespace

// Of the whole program, in which the transport is linked statically; operator new comes here, too.
extern "C" void* __libc_malloc(size_t bytes);  // NOLINT(bugprone-reserved-identifier): glibc's
extern "C" void* malloc(size_t bytes) {
  count(&g_allocations);
  return __libc_malloc(bytes);
}

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  count(&g_locks);
  return real(mutex);
}

namespace bitrail::test {
namespace {

Way one_port() {
  Way way{"verbs", "", 0, 0};
  way.ib.hca = "=mlx5_0";
  return way;
}

struct Traffic {
  explicit Traffic(size_t bytes) : data(pattern(bytes, 1)), got(bytes) {
    for (int rank = 0; rank < 2; rank++) {
      pair.sides[rank].listener.reset();  // it is looked after now and then, by a system call
      uint8_t* memory = rank == 0 ? data.data() : got.data();
      const Status status = pair.sides[rank].context->register_memory(
          memory, bytes, transport::kHost, &registered[rank]);
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }
  ~Traffic() {
    for (auto& memory : registered) memory.reset();
  }

  // False when a message was not taken or did not arrive soon. No assertion: they allocate.
  bool exchange(int messages) {
    for (int i = 0; i < messages; i++) {
      const transport::Buffer buffer{got.data(), got.size(), 7, registered[1].get()};
      bool accepted[2] = {};
      if (!pair.b().receiver->irecv(1, &buffer, &requests[1], &accepted[1]).ok()) return false;
      if (!pair.a()
               .sender
               ->isend(data.data(), data.size(), 7, 1, registered[0].get(), &requests[0],
                       &accepted[0])
               .ok()) {
        return false;
      }
      if (!accepted[0] || !accepted[1]) return false;
      for (int look = 0; look < 1000 && !(requests[0].done && requests[1].done); look++) {
        for (Side& side : pair.sides) side.context->progress();
      }
      if (!requests[0].done || !requests[1].done) return false;
      if (requests[1].status != BITRAIL_OK || requests[1].received[0] != data.size()) return false;
    }
    return true;
  }

  Pair pair{one_port()};
  std::vector<uint8_t> data, got;
  std::unique_ptr<transport::Memory> registered[2];
  transport::Request requests[2];
};

class Path : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, Path, testing::Values(8, 4096, 100'000));

TEST_P(Path, AllocatesAndLocksNothing) {
  Traffic traffic(GetParam());
  ASSERT_TRUE(traffic.exchange(2000));
  g_allocations = g_locks = 0;
  g_counting = true;
  const bool exchanged = traffic.exchange(2000);
  g_counting = false;
  EXPECT_TRUE(exchanged);
  EXPECT_EQ(g_allocations, 0U);
  EXPECT_EQ(g_locks, 0U);
  EXPECT_EQ(traffic.data, traffic.got);
}

TEST(Path, CountsWhatIsThere) {
  g_allocations = g_locks = 0;
  g_counting = true;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  ::operator delete(::operator new(1));
  g_counting = false;
  EXPECT_GE(g_allocations, 1U);
  EXPECT_EQ(g_locks, 1U);
}

// In a child of its own, which the kernel ends at the first call but read, write and exit. Returns
// its wait status.
template <typename Body>
int without_system_calls(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 2);
    const bool good = body();
    syscall(SYS_exit, good ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_P(Path, CallsNoSystem) {
  Traffic traffic(GetParam());
  ASSERT_TRUE(traffic.exchange(2000));
  const int status = without_system_calls([&traffic] { return traffic.exchange(2000); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  // The same would have been noticed.
  const int caught = without_system_calls([] { return getppid() != 0; });
  EXPECT_TRUE(WIFSIGNALED(caught) && WTERMSIG(caught) == SIGKILL) << "wait status " << caught;
}

}  // namespace
}  // namespace bitrail::test
