// The env plugin through its table: the environment, then the file's NCCL_* lines.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "plugin/abi/env_v1.h"

namespace bitrail::test {
namespace {

// The plugin reads its file once, so that the cases share one: this.
const nccl::EnvV1* table() {
  static const nccl::EnvV1* const loaded = []() -> const nccl::EnvV1* {
    const std::string file = fmt::format("{}/bitrail.conf", testing::TempDir());
    std::ofstream(file) << "# both in one file\nBITRAIL_TIMEOUT_MS=5000\nNCCL_DEBUG = WARN\n"
                           "NCCL_IB_TC=106\nNCCL_IB_TC=8\nNCCL_EMPTY=\n";
    setenv("BITRAIL_CONFIG", file.c_str(), 1);
    void* plugin = dlopen(ENV_FILE, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(plugin, nullptr) << dlerror();
    if (plugin == nullptr) return nullptr;
    return static_cast<const nccl::EnvV1*>(dlsym(plugin, "ncclEnvPlugin_v1"));
  }();
  return loaded;
}

class Env : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(table(), nullptr);
    ASSERT_EQ(table()->init(2, 28, 9, ""), nccl::kSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(table()->finalize(), nccl::kSuccess);
    unsetenv("NCCL_DEBUG");
  }
};

TEST_F(Env, TakesTheFilesLines) {
  EXPECT_STREQ(table()->name, "BitRail");
  EXPECT_STREQ(table()->get_env("NCCL_DEBUG"), "WARN");
  EXPECT_STREQ(table()->get_env("NCCL_IB_TC"), "8");
}

TEST_F(Env, TheEnvironmentWins) {
  setenv("NCCL_DEBUG", "TRACE", 1);
  EXPECT_STREQ(table()->get_env("NCCL_DEBUG"), "TRACE");
  setenv("NCCL_DEBUG", "", 1);
  EXPECT_STREQ(table()->get_env("NCCL_DEBUG"), "");
}

TEST_F(Env, DoesNotKnowOtherNames) {
  for (const char* name : {"NCCL_EMPTY", "NCCL_NO_SUCH", "BITRAIL_TIMEOUT_MS", "", "="}) {
    EXPECT_EQ(table()->get_env(name), nullptr) << name;
  }
  EXPECT_EQ(table()->get_env(nullptr), nullptr);
}

TEST_F(Env, AnswersManyThreadsAndStartsAgain) {
  const char* before = table()->get_env("NCCL_IB_TC");
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([] {
      for (int round = 0; round < 1000; round++) EXPECT_STREQ(table()->get_env("NCCL_IB_TC"), "8");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table()->finalize(), nccl::kSuccess);
  ASSERT_EQ(table()->init(2, 28, 9, nullptr), nccl::kSuccess);
  EXPECT_EQ(table()->get_env("NCCL_IB_TC"), before);
}

}  // namespace
}  // namespace bitrail::test
