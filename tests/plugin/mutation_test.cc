// The driver notices each way of being wrong, and nothing where nothing is.
#include "tests/plugin/driver/mutation.h"
#include "tests/plugin/driver/rank.h"
#include "tests/plugin/session.h"

namespace bitrail::test {
namespace {

class Mutation : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Faults, Mutation, testing::Range(0, kFaults),
                         [](const testing::TestParamInfo<int>& fault) {
                           return std::string(fault_name(static_cast<Fault>(fault.param)));
                         });

TEST_P(Mutation, IsNoticed) {
  const auto fault = static_cast<Fault>(GetParam());
  const std::unique_ptr<Net> good = plugin_file().net(kNewest);
  ASSERT_NE(good, nullptr);
  const std::unique_ptr<Net> net = mutate(good.get(), fault);
  RankOptions options;
  options.bytes = 24 << 20;
  // A message that never comes is noticed by time, as is a call that blocks.
  if (fault == Fault::lost_zero_bytes || fault == Fault::lost_registration)
    options.limit_ms = 2'000;
  if (fault == Fault::blocking_connect) options.call_ms = 1'000;
  Boards boards(1);
  const std::string text = run_threads(*net, options, &boards[0]);
  if (fault == Fault::none) {
    EXPECT_EQ(text, "");
  } else {
    EXPECT_NE(text, "");
    RecordProperty("noticed", text);
  }
  take_warnings();
}

}  // namespace
}  // namespace bitrail::test
