// Ranks on two hosts: network namespaces joined by a cable that a test can pull. Root only.
#include <bitrail/bitrail.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/processes.h"

namespace bitrail::bootstrap {
namespace {

using test::Finished;
using test::Processes;

constexpr int kDeadlineMs = 60'000;

bool run(const std::string& command) {
  Processes processes;
  processes.start({"/bin/sh", "-c", command});
  return processes.wait(0, Deadline::in_ms(kDeadlineMs)).code == 0;
}

class Hosts : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    const std::string a = name(0), b = name(1);
    made_ = run("ip netns add " + a + " && ip netns add " + b + " && ip link add port0 netns " + a +
                " type veth peer name port1 netns " + b);
    for (const int host : {0, 1}) {
      const std::string on = "ip -n " + name(host), number = std::to_string(host);
      made_ = made_ &&
              run(on + " addr add 10.98.0." + std::to_string(host + 1) + "/24 dev port" + number +
                  " && " + on + " link set lo up && " + on + " link set port" + number + " up");
    }
    if (!made_) GTEST_SKIP() << "this machine makes no network namespaces (ip netns, veth)";
  }
  void TearDown() override {
    for (const int host : {0, 1}) (void)run("ip netns del " + name(host) + " 2>/dev/null");
  }

  static std::string name(int host) {
    return "bitrail-" + std::to_string(getpid()) + "-" + std::to_string(host);
  }
  // Even ranks on one host, odd ones on the other.
  static void start(Processes* processes, int size, int timeout_ms, const std::string& mode) {
    for (int rank = 0; rank < size; rank++) {
      processes->start({"ip", "netns", "exec", name(rank % 2), BITRAIL_TEST_RANK, mode},
                       {{"BITRAIL_RANK", std::to_string(rank)},
                        {"BITRAIL_WORLD_SIZE", std::to_string(size)},
                        {"BITRAIL_RENDEZVOUS", "10.98.0.1:4455"},
                        {"BITRAIL_SECRET", "secret"},
                        {"BITRAIL_TIMEOUT_MS", std::to_string(timeout_ms)}});
    }
  }

  bool made_ = false;
};

// Each rank offers the address that reaches rank 0, not loopback.
TEST_F(Hosts, RanksOfTwoHostsBuildOneTree) {
  Processes processes;
  start(&processes, 20, kDeadlineMs, "leave");
  for (int rank = 0; rank < 20; rank++) {
    const Finished done = processes.wait(rank, Deadline::in_ms(kDeadlineMs));
    EXPECT_EQ(done.code, 0) << "rank " << rank << ": " << done.output;
  }
}

// A host that just falls silent is found out within the timeout.
TEST_F(Hosts, SilentHostIsLostWithinTheTimeout) {
  Processes processes;
  start(&processes, 2, 6'000, "wait");
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(processes.wait_for_output(rank, "of 2", Deadline::in_ms(kDeadlineMs)))
        << processes.output(rank);
  }
  ASSERT_TRUE(run("ip -n " + name(0) + " link set port0 down"));
  for (const int rank : {0, 1}) {
    const Finished done = processes.wait(rank, Deadline::in_ms(kDeadlineMs));
    EXPECT_EQ(done.code, BITRAIL_ERR_PEER_LOST) << done.output;
    const std::string lost = "rank " + std::to_string(1 - rank) + " (10.98.0.";
    EXPECT_NE(done.output.find(lost), std::string::npos) << done.output;
  }
}

}  // namespace
}  // namespace bitrail::bootstrap
