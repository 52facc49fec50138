// The device list: NCCL_IB_HCA's syntax, and what it must not select.
#include "runtime/transport/verbs/select.h"

#include <gtest/gtest.h>

namespace bitrail::transport::verbs {
namespace {

HcaList parsed(const std::string& text) {
  HcaList list;
  const Status status = parse_hca_list(text, &list);
  EXPECT_TRUE(status.ok()) << status.text();
  return list;
}

bool chosen(const std::string& text, const char* device, int port = 1) {
  const HcaList list = parsed(text);
  const bool selected = selects(list, device, port);
  EXPECT_TRUE(!selected || may_select(list, device)) << text << " " << device;
  return selected;
}

TEST(HcaList, EmptySelectsAll) {
  EXPECT_TRUE(chosen("", "mlx5_0"));
  EXPECT_TRUE(chosen("", "rxe0", 2));
}

TEST(HcaList, NamesArePrefixes) {
  EXPECT_TRUE(chosen("mlx5", "mlx5_0"));
  EXPECT_TRUE(chosen("mlx5_1", "mlx5_1"));
  EXPECT_TRUE(chosen("mlx5_1", "mlx5_10"));
  EXPECT_FALSE(chosen("mlx5_1", "mlx5_0"));
  EXPECT_FALSE(chosen("mlx5_10", "mlx5_1"));
  EXPECT_TRUE(chosen("rxe,mlx5_3", "mlx5_3"));
  EXPECT_TRUE(chosen("rxe,,mlx5_3,", "rxe7"));
}

TEST(HcaList, EqualsAsksForWholeNames) {
  EXPECT_TRUE(chosen("=mlx5_1", "mlx5_1"));
  EXPECT_FALSE(chosen("=mlx5_1", "mlx5_10"));
  EXPECT_FALSE(chosen("=mlx5_1", "mlx5_"));
  EXPECT_TRUE(chosen("=mlx5_0,mlx5_1", "mlx5_1"));
  EXPECT_FALSE(chosen("=mlx5_0,mlx5_1", "mlx5_11"));
}

TEST(HcaList, CaretExcludes) {
  EXPECT_FALSE(chosen("^mlx5_1", "mlx5_1"));
  EXPECT_FALSE(chosen("^mlx5_1", "mlx5_10"));
  EXPECT_TRUE(chosen("^mlx5_1", "mlx5_2"));
  EXPECT_FALSE(chosen("^=mlx5_1", "mlx5_1"));
  EXPECT_TRUE(chosen("^=mlx5_1", "mlx5_10"));
}

TEST(HcaList, PortsAreWhole) {
  EXPECT_TRUE(chosen("mlx5_0:2", "mlx5_0", 2));
  EXPECT_FALSE(chosen("mlx5_0:2", "mlx5_0", 1));
  EXPECT_FALSE(chosen("mlx5_0:1", "mlx5_0", 10));
  EXPECT_TRUE(chosen("=mlx5_0:2,mlx5_1", "mlx5_1", 1));
  EXPECT_FALSE(chosen("^mlx5_0:2", "mlx5_0", 2));
  EXPECT_TRUE(chosen("^mlx5_0:2", "mlx5_0", 1));
}

TEST(HcaList, OnlyDevicesThatMayBeSelectedAreOpened) {
  EXPECT_FALSE(may_select(parsed("mlx5_0:2"), "mlx5_1"));
  EXPECT_TRUE(may_select(parsed("mlx5_0:2"), "mlx5_0"));
  EXPECT_FALSE(may_select(parsed("^mlx5_0"), "mlx5_0"));
  EXPECT_TRUE(may_select(parsed("^mlx5_0:2"), "mlx5_0"));
}

TEST(HcaList, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"^", "=", "^=", ",", "mlx5_0,=mlx5_1", "mlx5_0,^mlx5_1", "==mlx5_0", "=^mlx5_0", ":1",
        "mlx5_0:", "mlx5_0:x", "mlx5_0:0", "mlx5_0:255", "mlx5_0:-1", "mlx5_0:1:2", "mlx5_0:+1",
        "mlx 5", "mlx5_0;mlx5_1", "mlx5_0:99999999999"}) {
    HcaList list;
    const Status status = parse_hca_list(text, &list);
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << text;
    EXPECT_NE(status.text().find("BITRAIL_IB_HCA"), std::string::npos) << status.text();
    EXPECT_TRUE(list.names.empty());
  }
  HcaList list;
  EXPECT_FALSE(parse_hca_list(std::string(5000, 'a'), &list).ok());
}

}  // namespace
}  // namespace bitrail::transport::verbs
