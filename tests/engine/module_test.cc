// Algorithms from shared objects: a good one runs, a wrong one is refused with the reason.
#include "runtime/api/module.h"

#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include "tests/support/world.h"

namespace bitrail {
namespace {

TEST(Module, IsVerifiedRegisteredAndRuns) {
  const Status status = api::load_modules(BITRAIL_TEST_MODULE);
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_TRUE(api::load_modules(BITRAIL_TEST_MODULE).ok()) << "a second time changes nothing";
  config::Settings settings;
  settings.algo = "allreduce:module_star";
  test::World job(3, settings);
  job.run([](int rank, bitrail_comm_t comm) {
    std::vector<float> data(100000, static_cast<float>(rank + 1));
    ASSERT_EQ(bitrail_allreduce(comm, data.data(), data.data(), data.size(), BITRAIL_FLOAT32,
                                BITRAIL_AVG, nullptr),
              BITRAIL_OK)
        << bitrail_last_error();
    EXPECT_EQ(std::count(data.begin(), data.end(), 2.0f), 100000);
    // Two hops by the star: only rank 0 talks to everybody.
    bitrail_counters_t counters = {};
    counters.struct_size = sizeof(counters);
    ASSERT_EQ(bitrail_comm_counters(comm, &counters), BITRAIL_OK);
    EXPECT_EQ(counters.wire_bytes_sent, rank == 0 ? 800000u : 400000u);
  });
}

TEST(Module, WrongAlgorithmIsRefusedWithTheReason) {
  const Status status = api::load_modules(BITRAIL_TEST_WRONG_MODULE);
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("module_star"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("3 ranks"), std::string::npos) << status.text();
}

TEST(Module, FilesThatAreNoModulesAreNamed) {
  Status status = api::load_modules("/does/not/exist.so");
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("/does/not/exist.so"), std::string::npos) << status.text();
  status = api::load_modules("libc.so.6");
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("bitrail_module_init"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace bitrail
