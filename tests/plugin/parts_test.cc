// The plugin's parts that are functions of their input: handles, NCCL's lists and variables, codes.
#include <gtest/gtest.h>

#include <sched.h>

#include <fstream>
#include <map>
#include <mutex>

#include "plugin/log/log.h"
#include "plugin/net/devices.h"
#include "plugin/net/handle.h"
#include "plugin/net/lock.h"
#include "plugin/settings/interfaces.h"
#include "plugin/settings/settings.h"
#include "tests/support/spawn.h"

namespace bitrail::plugin {
namespace {

TEST(Handle, IsReadAsWritten) {
  transport::Handle inner;
  for (size_t i = 0; i < 112; i++) inner.bytes[i] = static_cast<uint8_t>(i);
  uint8_t bytes[nccl::kHandleBytes];
  ASSERT_TRUE(encode_handle(inner, 42, bytes).ok());
  transport::Handle again;
  ASSERT_TRUE(decode_handle(bytes, 42, &again).ok());
  EXPECT_EQ(again.bytes, inner.bytes);
  EXPECT_EQ(decode_handle(bytes, 43, &again).code(), BITRAIL_ERR_JOB_ID);
  inner.bytes[112] = 1;
  EXPECT_EQ(encode_handle(inner, 42, bytes).code(), BITRAIL_ERR_INTERNAL);
}

TEST(Handle, IsNoSocketAddress) {
  uint8_t bytes[nccl::kHandleBytes];
  ASSERT_TRUE(encode_handle({}, 0, bytes).ok());
  EXPECT_EQ(bytes[0] | bytes[1] << 8, 'B' | 'T' << 8);  // neither AF_INET nor AF_INET6
}

TEST(Interfaces, FitListsAsInNccl) {
  EXPECT_TRUE(fits("", "eth0"));
  EXPECT_TRUE(fits("eth", "eth0"));
  EXPECT_TRUE(fits("ib,eth", "eth0"));
  EXPECT_FALSE(fits("ib", "eth0"));
  EXPECT_TRUE(fits("=eth0", "eth0"));
  EXPECT_FALSE(fits("=eth", "eth0"));
  EXPECT_FALSE(fits("^eth", "eth0"));
  EXPECT_TRUE(fits("^docker,lo", "eth0"));
  EXPECT_FALSE(fits("^docker,lo", "lo"));
  EXPECT_TRUE(fits("^=lo", "lo1"));
  EXPECT_TRUE(fits(",,eth", "eth0"));
  EXPECT_TRUE(fits("^", "eth0"));
}

TEST(Interfaces, GiveAnAddressOrSayWhatIsWrong) {
  std::string address;
  ASSERT_TRUE(choose_address("=lo", "AF_INET", &address).ok());
  EXPECT_EQ(address, "127.0.0.1");
  const Status none = choose_address("=nosuch0", "", &address);
  EXPECT_EQ(none.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(none.text().find("NCCL_SOCKET_IFNAME"), std::string::npos);
}

std::map<std::string, std::string> assigned(std::map<std::string, std::string> environment,
                                            std::vector<std::string>* ignored) {
  const auto lookup = [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  std::map<std::string, std::string> values;
  for (const config::Assignment& entry : nccl_defaults(lookup, ignored)) {
    values[entry.name] = entry.value;
  }
  return values;
}

TEST(Settings, TakeNcclsVariablesAsDefaults) {
  std::vector<std::string> ignored;
  const auto values = assigned({{"NCCL_IB_HCA", "=mlx5_0:1"},
                                {"NCCL_IB_GID_INDEX", "3"},
                                {"NCCL_IB_ADDR_FAMILY", "AF_INET6"},
                                {"NCCL_IB_TIMEOUT", "22"},
                                {"NCCL_IB_RETRY_CNT", "5"},
                                {"NCCL_IB_SL", "-1"},
                                {"NCCL_IB_TC", "106"},
                                {"NCCL_IB_QPS_PER_CONNECTION", "4"},
                                {"NCCL_IB_ADAPTIVE_ROUTING", "1"},
                                {"NCCL_IB_PCI_RELAXED_ORDERING", "2"}},
                               &ignored);
  const std::map<std::string, std::string> expected = {{"BITRAIL_IB_HCA", "=mlx5_0:1"},
                                                       {"BITRAIL_IB_GID_INDEX", "3"},
                                                       {"BITRAIL_IB_ADDRESS_FAMILY", "ipv6"},
                                                       {"BITRAIL_IB_TIMEOUT", "22"},
                                                       {"BITRAIL_IB_RETRY_COUNT", "5"},
                                                       {"BITRAIL_IB_TRAFFIC_CLASS", "106"},
                                                       {"BITRAIL_IB_QPS", "4"},
                                                       {"BITRAIL_IB_ADAPTIVE_ROUTING", "on"},
                                                       {"BITRAIL_IB_RELAXED_ORDERING", "auto"}};
  EXPECT_EQ(values, expected);
  EXPECT_TRUE(ignored.empty());
}

TEST(Settings, NameNcclsValuesThatCannotBeUsed) {
  std::vector<std::string> ignored;
  EXPECT_TRUE(
      assigned({{"NCCL_IB_TIMEOUT", "soon"}, {"NCCL_IB_RETRY_CNT", "99"}}, &ignored).empty());
  ASSERT_EQ(ignored.size(), 2U);
  EXPECT_NE(ignored[0].find("NCCL_IB_TIMEOUT"), std::string::npos) << ignored[0];
}

TEST(Settings, OursWin) {
  config::Settings settings;
  ASSERT_EQ(setenv("BITRAIL_IB_TIMEOUT", "10", 1), 0);
  ASSERT_EQ(setenv("NCCL_IB_TIMEOUT", "12", 1), 0);
  ASSERT_EQ(setenv("NCCL_IB_RETRY_CNT", "3", 1), 0);
  EXPECT_TRUE(load_settings(&settings).ok());
  EXPECT_EQ(settings.ib_timeout, 10);
  EXPECT_EQ(settings.ib_retry_count, 3);
  for (const char* name : {"BITRAIL_IB_TIMEOUT", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT"}) {
    unsetenv(name);
  }
}

TEST(Settings, KeepCommunicatorsAndJobsApart) {
  config::Settings settings;
  transport::Options first, second;
  transport_options(settings, 1, 7, &first);
  transport_options(settings, 2, nccl::kUndefined, &second);
  EXPECT_NE(first.identity.job_id, second.identity.job_id);
  EXPECT_FALSE(first.identity.secret.empty());
  EXPECT_EQ(first.ib.traffic_class, 7);
  settings.ib_traffic_class = 9;
  transport_options(settings, 1, 7, &first);
  EXPECT_EQ(first.ib.traffic_class, 9);
}

TEST(Lock, LetsOneInAtATime) {
  Lock lock;
  int64_t inside = 0, total = 0;  // unguarded but for the lock
  test::spawn(4, [&](int) {
    for (int i = 0; i < 20'000; i++) {
      const std::lock_guard guard(lock);
      EXPECT_EQ(++inside, 1);
      total++;
      if (i % 100 == 0) sched_yield();  // the others come to wait
      inside--;
    }
  });
  EXPECT_EQ(total, 80'000);
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(Devices, TellWhatTheirPartsTell) {
  transport::DeviceProperties first, second;
  first.name = "mlx5_0:1";
  first.pci_path = "/sys/a";
  first.guid = 7;
  first.port = 1;
  first.speed_mbps = 100'000;
  first.latency_us = 2;
  first.memory_types = nccl::kPointerHost | nccl::kPointerCuda;
  first.max_message_bytes = 1000;
  first.registration_is_global = true;
  second = first;
  second.name = "mlx5_0:2";
  second.port = 2;
  second.speed_mbps = 25'000;
  second.latency_us = 3;
  second.memory_types = nccl::kPointerHost;
  second.max_grouped_receives = 4;
  second.max_message_bytes = 900;
  const transport::DeviceProperties whole = combined({first, second});
  EXPECT_EQ(whole.name, "mlx5_0:1+mlx5_0:2");
  EXPECT_EQ(whole.pci_path, "/sys/a");
  EXPECT_EQ(whole.guid, 7U);
  EXPECT_EQ(whole.port, 1);
  EXPECT_EQ(whole.speed_mbps, 125'000);
  EXPECT_EQ(whole.latency_us, 3);
  EXPECT_EQ(whole.memory_types, static_cast<uint32_t>(nccl::kPointerHost));
  EXPECT_EQ(whole.max_grouped_receives, 4);
  EXPECT_EQ(whole.max_message_bytes, 900U);
  EXPECT_TRUE(whole.registration_is_global);
}

TEST(Settings, TakeNcclsLinesOfTheFile) {
  const std::string file = testing::TempDir() + "plugin_parts.conf";
  std::ofstream(file) << "NCCL_IB_TIMEOUT=12\nNCCL_IB_RETRY_CNT=3\nBITRAIL_IB_RETRY_COUNT=4\n";
  ASSERT_EQ(setenv("BITRAIL_CONFIG", file.c_str(), 1), 0);
  ASSERT_EQ(setenv("NCCL_IB_TIMEOUT", "13", 1), 0);
  config::Settings settings;
  EXPECT_TRUE(load_settings(&settings).ok());
  EXPECT_EQ(settings.ib_timeout, 13);
  EXPECT_EQ(settings.ib_retry_count, 4);
  unsetenv("NCCL_IB_TIMEOUT");
  EXPECT_TRUE(load_settings(&settings).ok());
  EXPECT_EQ(settings.ib_timeout, 12);
  unsetenv("BITRAIL_CONFIG");
}

TEST(Codes, AreThoseThatNcclExpects) {
  EXPECT_EQ(result_of(BITRAIL_OK), nccl::kSuccess);
  EXPECT_EQ(result_of(BITRAIL_ERR_PEER_LOST), nccl::kRemoteError);
  EXPECT_EQ(result_of(BITRAIL_ERR_TIMEOUT), nccl::kRemoteError);
  EXPECT_EQ(result_of(BITRAIL_ERR_SECRET_WRONG), nccl::kRemoteError);
  EXPECT_EQ(result_of(BITRAIL_ERR_SYSTEM), nccl::kSystemError);
  EXPECT_EQ(result_of(BITRAIL_ERR_BROKEN), nccl::kSystemError);
  EXPECT_EQ(result_of(BITRAIL_ERR_INVALID_ARGUMENT), nccl::kInvalidArgument);
}

}  // namespace
}  // namespace bitrail::plugin
