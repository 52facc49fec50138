// Power cuts, failing operations, full disks and kill -9 during a save: the old checkpoint or the
// new one loads whole.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>

#include "tests/optimizers/checkpoint_recorder.h"
#include "tests/optimizers/checkpoint_support.h"
#include "tests/support/processes.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using namespace checkpoint;
using test::LoadedStep;
using test::NamesIn;
using test::Processes;
using test::Recorder;
using test::SmallState;
using test::TemporaryDirectory;
using test::World;

Status SaveAll(int ranks, const std::string& directory, int64_t step, const FileOps& files,
               size_t elements = 37) {
  std::vector<Status> statuses(static_cast<size_t>(ranks));
  World(ranks).run([&](int rank, bitrail_comm_t comm) {
    statuses[static_cast<size_t>(rank)] =
        Save(comm, directory, SmallState(step, rank, elements).content, files);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), statuses[0].code());
    EXPECT_EQ(status.text(), statuses[0].text());
  }
  return statuses[0];
}

// Step that loads for one process; the old ranks' state is compared for rank 0.
int64_t Loaded(const std::string& directory, std::string* why, size_t elements = 37) {
  return LoadedStep(nullptr, directory, why, elements);
}

class Crash : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Crash, testing::Values(1, 3));

// Two saves into one directory; a crash after every operation of the second, with every subset of
// the names that were not synced, and the unsynced bytes there or not.
TEST_P(Crash, AfterEveryOperationOldOrNewLoads) {
  const TemporaryDirectory place;
  Recorder recorder;
  ASSERT_TRUE(SaveAll(GetParam(), place / "c", 1, recorder.Table()).ok());
  const size_t first = recorder.operations.size();
  ASSERT_TRUE(SaveAll(GetParam(), place / "c", 2, recorder.Table()).ok());
  std::set<int64_t> seen;
  int64_t certain = 1;  // what loads when nothing unsynced survives
  for (size_t count = first; count <= recorder.operations.size(); count++) {
    const int names = test::UnsyncedNames(recorder.operations, count);
    ASSERT_LE(names, 10);
    for (uint64_t subset = 0; subset < uint64_t{1} << names; subset++) {
      for (const bool bytes : {false, true}) {
        const std::string crashed = place / "crashed";
        std::filesystem::create_directory(crashed);
        test::Replay(recorder.operations, count, {.bytes = bytes, .names = subset}, crashed);
        std::string why;
        const int64_t step = Loaded(crashed, &why);
        ASSERT_TRUE(step == 1 || step == 2)
            << "operation " << count << ", names " << subset << ": " << step << " " << why;
        ASSERT_GE(step, certain) << "a durable checkpoint is gone again";
        if (subset == 0 && !bytes) certain = step;
        seen.insert(step);
        std::filesystem::remove_all(crashed);
      }
    }
  }
  EXPECT_EQ(certain, 2);  // a save that returned is durable
  EXPECT_EQ(seen.size(), 2u);
}

// The recorder finds what it is for: a rename before the file's fsync.
TEST(CrashSelfTest, AMissingSyncIsFound) {
  const TemporaryDirectory place;
  Recorder recorder;
  ASSERT_TRUE(SaveAll(1, place / "c", 1, recorder.Table()).ok());
  auto operations = recorder.operations;
  std::erase_if(operations,
                [](const auto& one) { return one.kind == test::Operation::Kind::sync; });
  std::filesystem::create_directory(place / "crashed");
  test::Replay(operations, operations.size(), {}, place / "crashed");
  std::string why;
  EXPECT_EQ(Loaded(place / "crashed", &why), -1);
}

// Every operation fails once, with a full disk: all ranks say so, the old one loads, nothing of the
// new one is left, and the next save works.
TEST_P(Crash, EveryFailureLeavesTheOldOne) {
  const TemporaryDirectory place;
  const std::string directory = place / "c";
  Recorder recorder;
  ASSERT_TRUE(SaveAll(GetParam(), directory, 1, recorder.Table()).ok());
  recorder.FailAt(-1, 0);
  ASSERT_TRUE(SaveAll(GetParam(), directory, 2, recorder.Table()).ok());
  const int calls = recorder.calls();
  ASSERT_GT(calls, 10);
  const size_t files = 1 + static_cast<size_t>(GetParam());
  int64_t step = 2;
  for (int n = 0; n < calls; n++) {
    recorder.FailAt(n, ENOSPC);
    const Status status = SaveAll(GetParam(), directory, step + 1, recorder.Table());
    std::string why;
    const int64_t loaded = Loaded(directory, &why);
    if (status.ok()) {  // removing the old files failed: harmless
      ASSERT_EQ(loaded, step + 1) << "call " << n << ": " << why;
    } else {
      ASSERT_NE(status.text().find("No space left on device"), std::string::npos) << status.text();
      ASSERT_NE(status.text().find(directory), std::string::npos) << status.text();
      ASSERT_TRUE(GetParam() == 1 || status.text().starts_with("rank ")) << status.text();
      // After the rename only the directory's fsync can fail: then both are there.
      ASSERT_TRUE(loaded == step || loaded == step + 1) << "call " << n << ": " << why;
      ASSERT_TRUE(loaded != step || NamesIn(directory).size() == files) << "call " << n;
    }
    recorder.FailAt(-1, 0);
    step += 2;
    ASSERT_TRUE(SaveAll(GetParam(), directory, step, recorder.Table()).ok());
    ASSERT_EQ(NamesIn(directory).size(), files) << "call " << n;
  }
}

// A child of three ranks saves one step after another until it is killed.
TEST(Kill, OldOrNewLoads) {
  const TemporaryDirectory place;
  const std::string directory = place / "c";
  constexpr size_t kElements = 100'000;
  constexpr int kRanks = 3;
  std::mt19937 random(7);
  int64_t last = 0;
  for (int round = 0; round < 12; round++) {
    Processes child(1, [&](int) {
      World(kRanks).run([&](int rank, bitrail_comm_t comm) {
        for (int64_t step = last + 1;; step++) {
          if (!Save(comm, directory, SmallState(step, rank, kElements).content).ok()) _exit(3);
          if (rank == 0 && step == last + 1) std::puts("first"), std::fflush(stdout);
        }
      });
      return 0;
    });
    ASSERT_TRUE(child.wait_for_output(0, "first", Deadline::in_ms(20000))) << child.output(0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    child.signal(0, SIGKILL);
    ASSERT_EQ(child.wait(0, Deadline::in_ms(10000)).code, 128 + SIGKILL);
    std::string why;
    const int64_t step = Loaded(directory, &why, kElements);
    ASSERT_GT(step, last) << why;
    last = step;
  }
}

// A file system of its own that the second checkpoint does not fit into.
int SaveOnSmallDisk(const std::string& mount_point) {
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("small", mount_point.c_str(), "tmpfs", 0, "size=3m") != 0) {
    return 77;
  }
  const std::string directory = mount_point + "/c";
  // 2 * 800 kB and a third of them: one fits, two do not.
  constexpr size_t kElements = 200'000;
  if (!Save(nullptr, directory, SmallState(1, 0, kElements).content).ok()) return 1;
  const Status status = Save(nullptr, directory, SmallState(2, 0, kElements).content);
  std::puts(status.text().c_str());
  if (status.code() != BITRAIL_ERR_SYSTEM) return 2;
  std::string why;
  if (Loaded(directory, &why, kElements) != 1) return 3;
  if (NamesIn(directory).size() != 2) return 4;
  return Save(nullptr, directory, SmallState(3, 0, 37).content).ok() ? 0 : 5;
}

TEST(DiskFull, IsSaidAndTheOldOneStays) {
  const TemporaryDirectory place;
  std::filesystem::create_directory(place / "small");
  Processes child(1, [&](int) { return SaveOnSmallDisk(place / "small"); });
  const test::Finished finished = child.wait(0, Deadline::in_ms(20000));
  if (finished.code == 77) GTEST_SKIP() << "mounting a tmpfs needs root (CAP_SYS_ADMIN)";
  EXPECT_EQ(finished.code, 0) << finished.output;
  EXPECT_NE(finished.output.find("No space left on device"), std::string::npos) << finished.output;
}

}  // namespace
}  // namespace bitrail
