#include "runtime/bootstrap/proof.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bitrail::bootstrap {
namespace {

struct Ends {
  Status connector, acceptor;
};

// Carries bytes both ways, `step` at a time, until nobody says anything more.
Ends talk(Proof* connector, Proof* acceptor, size_t step) {
  std::vector<uint8_t> to_acceptor, to_connector;
  Ends ends;
  const auto deliver = [step](std::vector<uint8_t>* bytes, Proof* proof, Status* status) {
    const size_t count = std::min(step, bytes->size());
    size_t used = 0;
    *status = proof->feed(std::span(*bytes).first(count), &used);
    bytes->erase(bytes->begin(), bytes->begin() + static_cast<ptrdiff_t>(count));
  };
  for (int round = 0; round < 1000; round++) {
    for (const uint8_t byte : connector->take_output()) to_acceptor.push_back(byte);
    for (const uint8_t byte : acceptor->take_output()) to_connector.push_back(byte);
    if (to_acceptor.empty() && to_connector.empty()) break;
    if (!to_acceptor.empty()) deliver(&to_acceptor, acceptor, &ends.acceptor);
    if (!to_connector.empty()) deliver(&to_connector, connector, &ends.connector);
  }
  return ends;
}

class ProofSteps : public testing::TestWithParam<size_t> {};

TEST_P(ProofSteps, SameSecretProvesBothWays) {
  Proof a(Side::connector, "secret", "job", 3), b(Side::acceptor, "secret", "job", 0);
  EXPECT_EQ(a.peer_rank(), -1);
  const Ends ends = talk(&a, &b, GetParam());
  EXPECT_TRUE(ends.connector.ok()) << ends.connector.text();
  EXPECT_TRUE(ends.acceptor.ok()) << ends.acceptor.text();
  ASSERT_TRUE(a.done());
  ASSERT_TRUE(b.done());
  EXPECT_EQ(a.peer_rank(), 0);
  EXPECT_EQ(b.peer_rank(), 3);
  ASSERT_EQ(a.session().size(), 32u);
  EXPECT_TRUE(std::ranges::equal(a.session(), b.session()));
}

TEST_P(ProofSteps, EveryRefusalIsTheSameDistinctErrorAtBothEnds) {
  struct Case {
    const char *secret_a, *job_a, *secret_b, *job_b;
    bitrail_status_t code;
  };
  for (const Case& c : {
           Case{"", "job", "secret", "job", BITRAIL_ERR_SECRET_MISSING},
           Case{"secret", "job", "", "job", BITRAIL_ERR_SECRET_MISSING},
           Case{"", "job", "", "job", BITRAIL_ERR_SECRET_MISSING},
           Case{"secret", "job", "secreT", "job", BITRAIL_ERR_SECRET_WRONG},
           Case{"secret", "job", "secret", "jobs", BITRAIL_ERR_JOB_ID},
           Case{"secret", "", "secret", "jobs", BITRAIL_ERR_JOB_ID},
       }) {
    Proof a(Side::connector, c.secret_a, c.job_a, 1), b(Side::acceptor, c.secret_b, c.job_b, 0);
    const Ends ends = talk(&a, &b, GetParam());
    EXPECT_EQ(ends.connector.code(), c.code) << ends.connector.text();
    EXPECT_EQ(ends.acceptor.code(), c.code) << ends.acceptor.text();
    EXPECT_FALSE(a.done() || b.done());
    EXPECT_TRUE(a.session().empty() && b.session().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Proof, ProofSteps, testing::Values(1, 7, 64, 4096));

TEST(Proof, ReflectionIsRefused) {
  Proof a(Side::connector, "secret", "job", 1);
  const std::vector<uint8_t> hello = a.take_output();
  size_t used = 0;
  EXPECT_EQ(a.feed(hello, &used).code(), BITRAIL_ERR_PROTOCOL);
}

// An attacker who relays the connector's own answer as if it were the acceptor's.
TEST(Proof, OwnAnswerDoesNotVerify) {
  Proof a(Side::connector, "secret", "job", 1), b(Side::acceptor, "secret", "job", 0);
  a.take_output();
  size_t used = 0;
  ASSERT_TRUE(a.feed(b.take_output(), &used).ok());
  const std::vector<uint8_t> answer = a.take_output();
  EXPECT_EQ(a.feed(answer, &used).code(), BITRAIL_ERR_SECRET_WRONG);
  EXPECT_FALSE(a.done());
}

TEST(Proof, ListenerAnswersNobodyWhoDidNotProveFirst) {
  Proof a(Side::connector, "guess", "job", 1), b(Side::acceptor, "secret", "job", 0);
  const size_t hello = b.take_output().size();
  size_t used = 0;
  ASSERT_TRUE(b.feed(a.take_output(), &used).ok());
  EXPECT_TRUE(b.take_output().empty());
  EXPECT_GT(hello, 0u);
}

TEST(Proof, ChangedBytesNeverProve) {
  Proof good(Side::connector, "secret", "job", 1);
  const size_t hello_bytes = good.take_output().size();
  for (size_t at = 0; at < hello_bytes; at++) {
    Proof a(Side::connector, "secret", "job", 1), b(Side::acceptor, "secret", "job", 0);
    std::vector<uint8_t> hello = a.take_output();
    hello[at] ^= 0x10;
    size_t used = 0;
    (void)b.feed(hello, &used);
    (void)a.feed(b.take_output(), &used);
    (void)b.feed(a.take_output(), &used);
    EXPECT_FALSE(b.done()) << "byte " << at;
  }
}

TEST(Proof, GarbageFailsAtOnceAndStaysFailed) {
  Proof b(Side::acceptor, "secret", "job", 0);
  b.take_output();
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  const std::span bytes(reinterpret_cast<const uint8_t*>(request.data()), request.size());
  size_t used = 0;
  EXPECT_EQ(b.feed(bytes, &used).code(), BITRAIL_ERR_PROTOCOL);
  EXPECT_FALSE(b.take_output().empty());  // the alert
  EXPECT_EQ(b.feed(bytes, &used).code(), BITRAIL_ERR_PROTOCOL);
  EXPECT_EQ(used, 0u);
}

TEST(Proof, LeavesWhatFollowsToTheCaller) {
  Proof a(Side::connector, "secret", "job", 1), b(Side::acceptor, "secret", "job", 0);
  size_t used = 0;
  ASSERT_TRUE(a.feed(b.take_output(), &used).ok());
  std::vector<uint8_t> bytes = a.take_output();
  const size_t proof = bytes.size();
  bytes.insert(bytes.end(), {1, 2, 3});
  ASSERT_TRUE(b.feed(bytes, &used).ok());
  EXPECT_TRUE(b.done());
  EXPECT_EQ(used, proof);
}

}  // namespace
}  // namespace bitrail::bootstrap
