// Registrations: aligned, shared, found, evicted, never stale, refused with reasons.
#include "runtime/transport/verbs/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <thread>

#include "tests/support/fake_verbs.h"

namespace bitrail::transport::verbs {
namespace {

using test::Call;
using test::FakeDevice;

constexpr size_t kPage = 4096;

class Registrations : public testing::Test {
 protected:
  Registrations() {
    fake.add_device({.name = "mlx5_0"});
    fake.add_device({.name = "mlx5_1"});
    open();
    pages.resize(64 * kPage);
    base = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(pages.data()) + kPage - 1) &
                                      ~(kPage - 1));
  }
  ~Registrations() override {
    ports.clear();
    EXPECT_TRUE(fake.counters().clean());
  }
  void open(const IbOptions& options = {}) {
    std::string why;
    EXPECT_TRUE(open_ports(options, &ports, &why).ok());
    ASSERT_FALSE(ports.empty()) << why;
  }
  RegistrationCache& cache() { return *ports[0]->registrations; }
  ibv_mr* acquire(size_t offset, size_t bytes, Keep keep = Keep::no) {
    ibv_mr* mr = nullptr;
    const Status status = cache().acquire(base + offset, bytes, &mr, keep);
    EXPECT_TRUE(status.ok()) << status.text();
    return mr;
  }
  uint64_t calls(Call call) { return fake.counters().calls[static_cast<int>(call)]; }

  test::FakeVerbs fake;
  std::vector<std::shared_ptr<Port>> ports;
  std::vector<uint8_t> pages;
  uint8_t* base = nullptr;  // page aligned, 63 pages
};

TEST_F(Registrations, AreOfWholePages) {
  ibv_mr* mr = acquire(kPage + 100, 2 * kPage);
  const std::vector<test::FakeRegistration> all = fake.registrations();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].address, reinterpret_cast<uint64_t>(base + kPage));
  EXPECT_EQ(all[0].bytes, 3 * kPage);
  cache().release(mr);
  EXPECT_EQ(cache().kept(), 0U);
}

TEST_F(Registrations, AreSharedWhileInUse) {
  ibv_mr* outer = acquire(0, 8 * kPage);
  EXPECT_EQ(acquire(3 * kPage + 1, 100), outer);
  EXPECT_EQ(acquire(0, 8 * kPage), outer);
  EXPECT_EQ(calls(Call::reg_mr), 1U);
  EXPECT_EQ(cache().in_use(), 1U);
  ibv_mr* other = acquire(7 * kPage, kPage + 1);  // one byte beyond
  EXPECT_NE(other, outer);
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(cache().in_use(), 2U);
    cache().release(outer);
  }
  EXPECT_EQ(cache().in_use(), 1U);
  cache().release(other);
  EXPECT_EQ(fake.counters().mrs, 0);
}

TEST_F(Registrations, EndWithTheirLastUserUnlessPromised) {
  cache().release(acquire(0, kPage));
  EXPECT_EQ(cache().kept(), 0U);
  cache().release(acquire(0, kPage, Keep::unused));
  EXPECT_EQ(cache().kept(), 1U);
  cache().release(acquire(10, 20));  // served by it
  EXPECT_EQ(cache().kept(), 1U);
  EXPECT_EQ(calls(Call::reg_mr), 2U);
  // The promise for a part does not keep the whole.
  ibv_mr* whole = acquire(8 * kPage, 4 * kPage);
  ibv_mr* part = acquire(9 * kPage, kPage, Keep::unused);
  EXPECT_EQ(part, whole);
  cache().release(whole);
  cache().release(part);
  EXPECT_EQ(cache().kept(), 1U);
}

TEST_F(Registrations, OfUnmappedMemoryAreNotServedAgain) {
  void* map = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(map, MAP_FAILED);
  ibv_mr* mr = nullptr;
  ASSERT_TRUE(cache().acquire(map, 4 * kPage, &mr).ok());
  cache().release(mr);
  munmap(map, 4 * kPage);
  void* again =
      mmap(map, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(again, map);
  ASSERT_TRUE(cache().acquire(map, 4 * kPage, &mr).ok());
  EXPECT_EQ(calls(Call::reg_mr), 2U);  // the old one reaches the old pages
  cache().release(mr);
  munmap(map, 4 * kPage);
}

TEST_F(Registrations, ForgetEndsWhatOverlaps) {
  for (size_t i = 0; i < 5; i++) cache().release(acquire(4 * i * kPage, 2 * kPage, Keep::unused));
  ibv_mr* used = acquire(40 * kPage, 2 * kPage, Keep::unused);
  EXPECT_EQ(cache().kept(), 6U);
  cache().forget(base + 2 * kPage, 2 * kPage);  // between two
  EXPECT_EQ(cache().kept(), 6U);
  cache().forget(base + 5 * kPage, 3 * kPage + 1);  // the second and the third
  EXPECT_EQ(cache().kept(), 4U);
  cache().forget(base + 41 * kPage, 10);
  EXPECT_EQ(cache().kept(), 4U);  // still in use, but
  ibv_mr* fresh = acquire(40 * kPage, kPage);
  EXPECT_NE(fresh, used);
  cache().release(used);
  EXPECT_EQ(cache().kept(), 4U);
  cache().release(fresh);
  EXPECT_EQ(cache().kept(), 3U);
  cache().forget(base, 64 * kPage);
  EXPECT_EQ(cache().kept(), 0U);
}

TEST_F(Registrations, BoundEvictsTheLeastRecentlyUsed) {
  IbOptions options;
  options.registration_cache = 3;
  ports.clear();
  open(options);
  for (size_t i = 0; i < 3; i++) cache().release(acquire(2 * i * kPage, kPage, Keep::unused));
  cache().release(acquire(0, 10));                            // the first is young again
  cache().release(acquire(20 * kPage, kPage, Keep::unused));  // the second goes
  EXPECT_EQ(cache().kept(), 3U);
  const uint64_t before = calls(Call::reg_mr);
  cache().release(acquire(0, kPage));
  cache().release(acquire(4 * kPage, kPage));
  cache().release(acquire(20 * kPage, kPage));
  EXPECT_EQ(calls(Call::reg_mr), before);
  cache().release(acquire(2 * kPage, kPage));
  EXPECT_EQ(calls(Call::reg_mr), before + 1);
}

TEST_F(Registrations, OnesInsideALargerOneAreReplaced) {
  cache().release(acquire(2 * kPage, kPage, Keep::unused));
  ibv_mr* used = acquire(4 * kPage, kPage, Keep::unused);
  ibv_mr* large = acquire(0, 8 * kPage, Keep::unused);
  EXPECT_EQ(cache().kept(), 2U);
  EXPECT_EQ(acquire(4 * kPage, kPage), large);
  cache().release(large);
  cache().release(used);
  EXPECT_EQ(cache().kept(), 1U);
  cache().release(large);
}

// Against a plain list of what is registered, with many overlapping ranges.
TEST_F(Registrations, RandomRangesAreCovered) {
  std::mt19937_64 random(7);
  std::vector<ibv_mr*> held;
  for (int round = 0; round < 20'000; round++) {
    const size_t offset = random() % (60 * kPage);
    const size_t bytes = 1 + random() % std::min<size_t>(63 * kPage - offset, 9 * kPage);
    switch (random() % 8) {
      case 0:
        cache().forget(base + offset, bytes);
        break;
      case 1:
      case 2:
      case 3:
        if (held.empty()) break;
        std::swap(held[random() % held.size()], held.back());
        cache().release(held.back());
        held.pop_back();
        break;
      default: {
        ibv_mr* mr = acquire(offset, bytes, random() % 2 == 0 ? Keep::unused : Keep::no);
        ASSERT_NE(mr, nullptr);
        const auto start = reinterpret_cast<uint8_t*>(mr->addr);
        ASSERT_TRUE(start <= base + offset && start + mr->length >= base + offset + bytes);
        held.push_back(mr);
      }
    }
    if (held.size() > 40) {
      for (ibv_mr* mr : held) cache().release(mr);
      held.clear();
      ASSERT_EQ(cache().in_use(), 0U);
    }
  }
  for (ibv_mr* mr : held) cache().release(mr);
  EXPECT_EQ(cache().in_use(), 0U);
  EXPECT_EQ(cache().kept(), static_cast<size_t>(fake.counters().mrs));
}

TEST_F(Registrations, RefusalSaysSizeLimitAndRemedy) {
  fake.fail(Call::reg_mr, ENOMEM, 100);
  ibv_mr* mr = nullptr;
  const Status status = cache().acquire(base, 3 * kPage, &mr);
  EXPECT_EQ(status.code(), BITRAIL_ERR_SYSTEM);
  EXPECT_EQ(mr, nullptr);
  for (const char* part :
       {"mlx5_0:1", "12288 bytes", "limit of locked memory is", "ulimit -l unlimited",
        "limits.conf", "LimitMEMLOCK=infinity", "--ulimit memlock=-1"}) {
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  }
  EXPECT_EQ(cache().kept(), 0U);
}

TEST_F(Registrations, UnusedOnesMakeRoom) {
  for (size_t i = 0; i < 8; i++) cache().release(acquire(4 * i * kPage, kPage, Keep::unused));
  fake.fail(Call::reg_mr, ENOMEM, 2);
  ibv_mr* mr = acquire(40 * kPage, kPage);
  EXPECT_NE(mr, nullptr);
  EXPECT_EQ(cache().kept(), 3U);  // eight, four, two, and the new one
  cache().release(mr);
}

TEST_F(Registrations, RelaxedOrderingWhereItIs) {
  ibv_mr* mr = acquire(0, kPage);
  EXPECT_TRUE(cache().relaxed_ordering());
  EXPECT_TRUE(fake.registrations()[0].with_iova);
  EXPECT_NE(fake.registrations()[0].access & IBV_ACCESS_RELAXED_ORDERING, 0);
  cache().release(mr);

  IbOptions options;
  options.relaxed_ordering = "off";
  ports.clear();
  open(options);
  mr = acquire(0, kPage);
  EXPECT_FALSE(fake.registrations()[0].with_iova);
  EXPECT_EQ(fake.registrations()[0].access & IBV_ACCESS_RELAXED_ORDERING, 0);
  cache().release(mr);

  ports.clear();
  open();
  fake.fail(Call::reg_mr, EOPNOTSUPP);  // the kernel is too old
  mr = acquire(0, kPage);
  EXPECT_FALSE(cache().relaxed_ordering());
  EXPECT_EQ(fake.registrations()[0].access & IBV_ACCESS_RELAXED_ORDERING, 0);
  cache().release(mr);

  fake.table().reg_mr_iova2 = nullptr;
  ports.clear();
  open();
  mr = acquire(0, kPage);
  EXPECT_FALSE(cache().relaxed_ordering());
  cache().release(mr);
}

TEST_F(Registrations, ReadOnlyMemoryIsASource) {
  fake.fail(Call::reg_mr, EFAULT);
  ibv_mr* mr = acquire(0, kPage);
  EXPECT_EQ(fake.registrations()[0].access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), 0);
  cache().release(mr);
  fake.fail(Call::reg_mr, EFAULT, 2);
  const Status status = cache().acquire(base, kPage, &mr);
  EXPECT_NE(status.text().find("not mapped"), std::string::npos) << status.text();
}

TEST_F(Registrations, OddRangesAreAnswered) {
  ibv_mr* mr = acquire(0, 0);
  EXPECT_EQ(mr, nullptr);
  cache().release(mr);
  EXPECT_EQ(cache().acquire(base, SIZE_MAX, &mr).code(), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(cache().acquire(nullptr, 10, &mr).code(), BITRAIL_ERR_INVALID_ARGUMENT);
}

TEST_F(Registrations, ThreadsShareThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([this, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 3000; i++) {
        const size_t offset = random() % (40 * kPage), bytes = 1 + random() % (8 * kPage);
        ibv_mr* mr = nullptr;
        ASSERT_TRUE(
            cache().acquire(base + offset, bytes, &mr, i % 3 == 0 ? Keep::no : Keep::unused).ok());
        ASSERT_GE(mr->length, bytes);
        if (i % 100 == 0) cache().forget(base, 20 * kPage);
        cache().release(mr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache().in_use(), 0U);
}

TEST_F(Registrations, MemoryIsAtEveryPort) {
  ASSERT_EQ(ports.size(), 2U);
  std::unique_ptr<Memory> memory;
  ASSERT_TRUE(VerbsMemory::create(ports, base + 10, 5000, kHost, &memory).ok());
  auto* made = static_cast<VerbsMemory*>(memory.get());
  EXPECT_EQ(fake.counters().mrs, 2);
  EXPECT_NE(made->lkey(0), made->lkey(1));
  EXPECT_NE(made->rkey(0), made->lkey(0));
  EXPECT_TRUE(made->covers(base + 10, 5000));
  EXPECT_TRUE(made->covers(base + 5009, 1));
  EXPECT_FALSE(made->covers(base + 9, 10));
  EXPECT_FALSE(made->covers(base + 5009, 2));
  EXPECT_FALSE(made->covers(base + 10, SIZE_MAX));
  memory.reset();
  EXPECT_EQ(fake.counters().mrs, 0);
  // The second port's refusal leaves nothing at the first.
  fake.fail(Call::reg_mr, ENOMEM, 1, 1);
  const Status status = VerbsMemory::create(ports, base, 5000, kHost, &memory);
  EXPECT_NE(status.text().find("mlx5_1:1"), std::string::npos) << status.text();
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(fake.counters().mrs, 0);
}

TEST_F(Registrations, DeviceMemoryNeedsItsWay) {
  std::unique_ptr<Memory> memory;
  for (const auto& port : ports) port->properties.memory_types = kHost;
  Status status = VerbsMemory::create(ports, base, kPage, kCuda, &memory);
  EXPECT_EQ(status.code(), BITRAIL_ERR_UNSUPPORTED);
  EXPECT_NE(status.text().find("nvidia_peermem"), std::string::npos) << status.text();
  EXPECT_EQ(VerbsMemory::create(ports, base, kPage, kDmaBuf, &memory).code(),
            BITRAIL_ERR_UNSUPPORTED);
  for (const auto& port : ports) port->properties.memory_types |= kCuda;
  EXPECT_TRUE(VerbsMemory::create(ports, base, kPage, kCuda, &memory).ok());
}

TEST_F(Registrations, DmaBufIsRegisteredByDescriptor) {
  const int fd = memfd_create("buffer", MFD_CLOEXEC);
  std::unique_ptr<Memory> memory;
  ASSERT_TRUE(VerbsMemory::create_dmabuf(ports, fd, 0, base, kPage, &memory).ok());
  EXPECT_EQ(fake.counters().mrs, 2);
  EXPECT_TRUE(static_cast<VerbsMemory*>(memory.get())->covers(base, kPage));
  memory.reset();
  EXPECT_EQ(fake.counters().mrs, 0);
  fake.fail(Call::reg_dmabuf_mr, EOPNOTSUPP, 1, 1);
  const Status status = VerbsMemory::create_dmabuf(ports, fd, 0, base, kPage, &memory);
  EXPECT_EQ(status.code(), BITRAIL_ERR_UNSUPPORTED);
  EXPECT_NE(status.text().find("mlx5_1:1"), std::string::npos) << status.text();
  EXPECT_EQ(fake.counters().mrs, 0);
  EXPECT_EQ(VerbsMemory::create_dmabuf(ports, -1, 0, base, kPage, &memory).code(),
            BITRAIL_ERR_INVALID_ARGUMENT);
  close(fd);
}

}  // namespace
}  // namespace bitrail::transport::verbs
