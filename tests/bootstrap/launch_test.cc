#include "tools/bitrail/launch.h"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/processes.h"

namespace bitrail::tool {
namespace {

using test::Finished;
using test::Processes;

constexpr int kDeadlineMs = 60'000;

Finished launch_shell(int ranks, const std::string& script,
                      const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  Processes processes;
  processes.start({BITRAIL_TEST_LAUNCH, "-n", std::to_string(ranks), "--", "/bin/sh", "-c", script},
                  environment);
  return processes.wait(0, Deadline::in_ms(kDeadlineMs));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) found++;
  return found;
}

bool alive(int pid) { return kill(pid, 0) == 0; }

TEST(Launch, EachRankGetsItsNumberAndItsLinesCarryIt) {
  const Finished done = launch_shell(
      3, "echo out $BITRAIL_RANK/$BITRAIL_WORLD_SIZE; echo err >&2; printf 'no newline'");
  ASSERT_TRUE(done.in_time);
  EXPECT_EQ(done.code, 0) << done.output;
  for (int rank = 0; rank < 3; rank++) {
    std::string prefix = std::to_string(rank) + "] ";
    prefix.insert(prefix.begin(), '[');  // "[" + ... : GCC 12 warns of an overlap that is not there
    EXPECT_EQ(count(done.output, prefix + "out " + std::to_string(rank) + "/3\n"), 1);
    EXPECT_EQ(count(done.output, prefix + "err\n"), 1);
    EXPECT_EQ(count(done.output, prefix + "no newline\n"), 1);
  }
  EXPECT_EQ(count(done.output, "\n"), 9) << done.output;
}

TEST(Launch, GivesSecretRendezvousAndJobUnlessTheyAreSet) {
  const std::string script =
      "echo =$BITRAIL_SECRET=$BITRAIL_RENDEZVOUS=$BITRAIL_JOB_ID=$BITRAIL_RANKS_PER_NODE=";
  const Finished fresh = launch_shell(2, script);
  EXPECT_EQ(count(fresh.output, "=127.0.0.1:"), 2) << fresh.output;
  EXPECT_EQ(count(fresh.output, "=="), 0) << fresh.output;
  EXPECT_EQ(count(fresh.output, "=2=\n"), 2) << fresh.output;
  const Finished given = launch_shell(2, script,
                                      {{"BITRAIL_SECRET", "s"},
                                       {"BITRAIL_RENDEZVOUS", "h:1"},
                                       {"BITRAIL_JOB_ID", "j"},
                                       {"BITRAIL_LINK_MBPS", "100"}});
  EXPECT_EQ(count(given.output, "=s=h:1=j=1=\n"), 2) << given.output;
}

TEST(Launch, ReturnsTheFirstFailureAndEndsTheRest) {
  const Finished done =
      launch_shell(3, "if [ $BITRAIL_RANK = 1 ]; then exit 7; fi; exec sleep 100");
  ASSERT_TRUE(done.in_time);
  EXPECT_EQ(done.code, 7);
  EXPECT_EQ(count(done.output, "rank 1 exited with 7"), 1) << done.output;
}

TEST(Launch, OthersMaySayWhatTheySaw) {
  const Finished done =
      launch_shell(2, "if [ $BITRAIL_RANK = 1 ]; then exit 7; fi; sleep 1; echo rank 1 is lost");
  EXPECT_EQ(done.code, 7);
  EXPECT_EQ(count(done.output, "[0] rank 1 is lost\n"), 1) << done.output;
}

TEST(Launch, KilledRankCountsAs128PlusSignal) {
  const Finished done = launch_shell(2, "if [ $BITRAIL_RANK = 0 ]; then kill -KILL $$; fi");
  EXPECT_EQ(done.code, 128 + SIGKILL);
  EXPECT_EQ(count(done.output, "rank 0 was ended by signal 9"), 1) << done.output;
}

TEST(Launch, PassesSignalsOnAndReportsThem) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Processes processes;
    processes.start(
        {BITRAIL_TEST_LAUNCH, "-n", "2", "/bin/sh", "-c",
         "trap 'echo caught; exit 0' INT TERM; echo ready; while :; do sleep 0.05; done"});
    for (const char* ready : {"[0] ready", "[1] ready"}) {
      ASSERT_TRUE(processes.wait_for_output(0, ready, Deadline::in_ms(kDeadlineMs)));
    }
    processes.signal(0, signal);
    const Finished done = processes.wait(0, Deadline::in_ms(kDeadlineMs));
    EXPECT_EQ(done.code, 128 + signal) << done.output;
    EXPECT_EQ(count(done.output, "caught"), 2) << done.output;
  }
}

TEST(Launch, SecondSignalKillsWhoIgnoresTheFirst) {
  Processes processes;
  processes.start({BITRAIL_TEST_LAUNCH, "-n", "2", "/bin/sh", "-c",
                   "trap 'echo ignored' INT; echo ready; while :; do sleep 0.05; done"});
  for (const char* ready : {"[0] ready", "[1] ready"}) {
    ASSERT_TRUE(processes.wait_for_output(0, ready, Deadline::in_ms(kDeadlineMs)));
  }
  processes.signal(0, SIGINT);
  for (const char* ignored : {"[0] ignored", "[1] ignored"}) {
    ASSERT_TRUE(processes.wait_for_output(0, ignored, Deadline::in_ms(kDeadlineMs)));
  }
  processes.signal(0, SIGINT);
  const Finished done = processes.wait(0, Deadline::in_ms(kDeadlineMs));
  EXPECT_TRUE(done.in_time);
  EXPECT_EQ(done.code, 128 + SIGINT);
}

TEST(Launch, RanksDieWithTheLauncher) {
  Processes processes;
  processes.start(
      {BITRAIL_TEST_LAUNCH, "-n", "1", "/bin/sh", "-c", "echo pid $$.; exec sleep 100"});
  ASSERT_TRUE(processes.wait_for_output(0, ".\n", Deadline::in_ms(kDeadlineMs)));
  const std::string output = processes.output(0);
  const int pid = std::stoi(output.substr(output.find("pid ") + 4));
  EXPECT_TRUE(alive(pid));
  processes.signal(0, SIGKILL);
  (void)processes.wait(0, Deadline::in_ms(kDeadlineMs));
  const Deadline deadline = Deadline::in_ms(kDeadlineMs);
  while (alive(pid) && !deadline.passed()) usleep(1000);
  EXPECT_FALSE(alive(pid));
}

TEST(Launch, TimeoutEndsTheJob) {
  Processes processes;
  processes.start({BITRAIL_TEST_LAUNCH, "-n", "2", "--timeout", "0.2", "sleep", "100"});
  EXPECT_EQ(processes.wait(0, Deadline::in_ms(kDeadlineMs)).code, 124);
}

TEST(Launch, SaysWhatIsWrongWithItsLine) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"-n", "0", "true"}, {"-n"}, {"-n", "2"}, {"true"}, {"--quick", "-n", "2", "true"}}) {
    Processes processes;
    std::vector<std::string> command = {BITRAIL_TEST_LAUNCH};
    command.insert(command.end(), line.begin(), line.end());
    processes.start(command);
    const Finished done = processes.wait(0, Deadline::in_ms(kDeadlineMs));
    EXPECT_EQ(done.code, 2);
    EXPECT_EQ(count(done.output, "usage:"), 1);
  }
}

TEST(Launch, ProgramThatIsNotThereIsNamed) {
  Processes processes;
  processes.start({BITRAIL_TEST_LAUNCH, "-n", "2", "/nowhere/prog"});
  const Finished done = processes.wait(0, Deadline::in_ms(kDeadlineMs));
  EXPECT_EQ(done.code, 127);
  EXPECT_GE(count(done.output, "/nowhere/prog"), 1) << done.output;
}

TEST(Launch, SixtyFourRanksStart) {
  Processes processes;
  processes.start({BITRAIL_TEST_LAUNCH, "-n", "64", BITRAIL_TEST_RANK});
  const Finished done = processes.wait(0, Deadline::in_ms(kDeadlineMs));
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_EQ(count(done.output, " of 64 by bitrail"), 64);
}

// Every survivor names the rank that was killed, wherever it stands in the tree.
TEST(Launch, AllSurvivorsNameAKilledRank) {
  for (const int victim : {0, 1, 11}) {
    Processes processes;
    processes.start({BITRAIL_TEST_LAUNCH, "-n", "12", BITRAIL_TEST_RANK, "wait"},
                    {{"BITRAIL_TIMEOUT_MS", std::to_string(kDeadlineMs)}});
    for (int rank = 0; rank < 12; rank++) {
      const std::string ready = "rank " + std::to_string(rank) + " of 12";
      ASSERT_TRUE(processes.wait_for_output(0, ready, Deadline::in_ms(kDeadlineMs)));
    }
    const std::string output = processes.output(0);
    const size_t line = output.find("rank " + std::to_string(victim) + " of 12");
    const int pid = std::stoi(output.substr(output.find("pid ", line) + 4));
    EXPECT_EQ(kill(pid, SIGKILL), 0);
    const Finished done = processes.wait(0, Deadline::in_ms(kDeadlineMs));
    EXPECT_EQ(done.code, 128 + SIGKILL);
    const std::string lost = "failed: rank " + std::to_string(victim) + " (";
    EXPECT_EQ(count(done.output, lost), 11) << done.output;
  }
}

}  // namespace
}  // namespace bitrail::tool
