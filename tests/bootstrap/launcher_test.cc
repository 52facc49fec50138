#include "runtime/bootstrap/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/bootstrap/join.h"

namespace bitrail::bootstrap {
namespace {

// No launcher's variables but those a test sets.
class Detect : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PMIX_RANK",
                             "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE", "TORCHELASTIC_RUN_ID"}) {
      unsetenv(name);
    }
    settings_.timeout_ms = 30'000;
  }
  void TearDown() override { SetUp(); }

  Status detect(const bitrail_comm_options_t* options = nullptr) {
    return bootstrap::detect(options, settings_, &world_);
  }
  static bitrail_comm_options_t options(int rank, int size) {
    bitrail_comm_options_t made{};
    made.struct_size = sizeof made;
    made.rank = rank;
    made.world_size = size;
    return made;
  }

  config::Settings settings_;
  World world_;
};

void set(const char* name, const char* value) { setenv(name, value, 1); }

void set_torchrun() {
  set("RANK", "2");
  set("WORLD_SIZE", "4");
  set("MASTER_ADDR", "node0");
  set("MASTER_PORT", "29500");
}

TEST_F(Detect, NobodyMeansSingle) {
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.launcher, "single");
  EXPECT_EQ(world_.rank, 0);
  EXPECT_EQ(world_.size, 1);
}

TEST_F(Detect, TorchrunListensOnePortHigher) {
  set_torchrun();
  set("TORCHELASTIC_RUN_ID", "run7");
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.launcher, "torchrun");
  EXPECT_EQ(world_.rank, 2);
  EXPECT_EQ(world_.size, 4);
  EXPECT_EQ(world_.rendezvous, "node0:29501");
  EXPECT_EQ(world_.job_id, "run7");
  set("MASTER_ADDR", "fd00::1");
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.rendezvous, "[fd00::1]:29501");
  settings_.rendezvous = "other:1";
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.rendezvous, "other:1");
}

TEST_F(Detect, HydraNeedsARendezvous) {
  set("PMI_RANK", "1");
  set("PMI_SIZE", "2");
  const Status status = detect();
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("BITRAIL_RENDEZVOUS"), std::string::npos) << status.text();
  settings_.rendezvous = "node0:4000";
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.launcher, "hydra");
  EXPECT_EQ(world_.rank, 1);
}

// bitrail launch under torchrun's variables under Hydra's; and the caller over all of them.
TEST_F(Detect, TheMoreExplicitOneWins) {
  set("PMI_RANK", "1");
  set("PMI_SIZE", "2");
  set_torchrun();
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.launcher, "torchrun");
  settings_.rank = 0;
  settings_.world_size = 8;
  settings_.rendezvous = "127.0.0.1:5";
  ASSERT_TRUE(detect().ok());
  EXPECT_EQ(world_.launcher, "bitrail");
  EXPECT_EQ(world_.size, 8);
  bitrail_comm_options_t given = options(3, 16);
  given.secret = "s";
  given.job_id = "j";
  given.rendezvous = "127.0.0.1:6";
  ASSERT_TRUE(detect(&given).ok());
  EXPECT_EQ(world_.launcher, "callback");
  EXPECT_EQ(world_.rank, 3);
  EXPECT_EQ(world_.size, 16);
  EXPECT_EQ(world_.secret, "s");
  EXPECT_EQ(world_.job_id, "j");
  EXPECT_EQ(world_.rendezvous, "127.0.0.1:6");
}

TEST_F(Detect, BadLauncherVariablesAreNamed) {
  set_torchrun();
  for (const auto& [name, value] : {std::pair{"RANK", "4"},
                                    {"RANK", "two"},
                                    {"RANK", "-1"},
                                    {"WORLD_SIZE", "0"},
                                    {"MASTER_PORT", "65535"}}) {
    set_torchrun();
    set(name, value);
    const Status status = detect();
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << name << "=" << value;
    EXPECT_NE(status.text().find(name), std::string::npos) << status.text();
  }
}

TEST_F(Detect, HalfOfAPairIsRefused) {
  settings_.rank = 1;
  EXPECT_EQ(detect().code(), BITRAIL_ERR_CONFIG);
  settings_.world_size = 1;
  EXPECT_EQ(detect().code(), BITRAIL_ERR_CONFIG);
  for (const auto& [rank, size] : {std::pair{1, -1}, {-1, 4}, {4, 4}}) {
    const bitrail_comm_options_t given = options(rank, size);
    EXPECT_EQ(detect(&given).code(), BITRAIL_ERR_INVALID_ARGUMENT) << rank << " of " << size;
  }
  bitrail_comm_options_t old = options(-1, -1);
  old.struct_size = 8;
  EXPECT_EQ(detect(&old).code(), BITRAIL_ERR_INVALID_ARGUMENT);
}

TEST_F(Detect, CallbackReplacesTheRendezvousAndItsFailureIsReported) {
  bitrail_comm_options_t given = options(0, 2);
  EXPECT_EQ(detect(&given).code(), BITRAIL_ERR_CONFIG);  // neither callback nor address
  given.allgather = [](void*, const void*, size_t, void*) { return 5; };
  ASSERT_TRUE(detect(&given).ok());
  std::unique_ptr<Bootstrap> bootstrap;
  const Status status = Bootstrap::join(world_, settings_, Deadline::in_ms(5000), &bootstrap);
  EXPECT_EQ(status.code(), BITRAIL_ERR_SYSTEM);
  EXPECT_NE(status.text().find("returned 5"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace bitrail::bootstrap
