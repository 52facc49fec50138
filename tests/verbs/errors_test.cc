// Each error that users report has a hint that names what to turn.
#include "runtime/transport/verbs/errors.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include <cerrno>

namespace bitrail::transport::verbs {
namespace {

TEST(Errors, EachErrnoHasItsHint) {
  const struct {
    const char* call;
    int error;
    const char* part;
  } cases[] = {{"ibv_modify_qp", ETIMEDOUT, "BITRAIL_IB_HCA"},
               {"ibv_modify_qp", ENODEV, "BITRAIL_IB_GID_INDEX"},
               {"ibv_modify_qp", EINVAL, "MTU"},
               {"ibv_modify_qp", ENETUNREACH, "BITRAIL_IB_ADDRESS_FAMILY"},
               {"ibv_modify_qp", EHOSTUNREACH, "BITRAIL_IB_ADDRESS_RANGE"},
               {"ibv_create_qp", ENOMEM, "BITRAIL_IB_QPS"},
               {"ibv_create_qp", EINVAL, "inline"},
               {"ibv_create_cq", ENOMEM, "completion queues"},
               {"ibv_reg_mr", ENOMEM, "ulimit -l"},
               {"ibv_reg_mr_iova2", EFAULT, "nvidia_peermem"},
               {"ibv_reg_dmabuf_mr", EOPNOTSUPP, "nvidia_peermem"},
               {"ibv_open_device", EACCES, "/dev/infiniband"},
               {"ibv_open_device", EMFILE, "ulimit -n"},
               {"ibv_get_device_list", ENOSYS, "ib_uverbs"}};
  for (const auto& c : cases) {
    const std::string text = errno_text(c.call, c.error);
    EXPECT_NE(text.find(c.part), std::string::npos) << text;
    EXPECT_EQ(text.rfind(c.call, 0), 0U) << text;
  }
}

TEST(Errors, UnknownErrnoStillHasItsName) {
  EXPECT_EQ(errno_text("ibv_modify_qp", EDOM),
            "ibv_modify_qp: Numerical argument out of domain (errno 33)");
}

TEST(Errors, EachCompletionHasNumberAndHint) {
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_GENERAL_ERR; status++) {
    const std::string text = completion_text(static_cast<ibv_wc_status>(status), 0x81);
    EXPECT_NE(text.find(fmt::format("({}), vendor error 0x81: ", status)), std::string::npos)
        << text;
  }
  const std::string text = completion_text(IBV_WC_RETRY_EXC_ERR, 0);
  EXPECT_EQ(text.rfind("transport retry counter exceeded (12): ", 0), 0U) << text;
  for (const char* knob :
       {"BITRAIL_IB_TIMEOUT", "BITRAIL_IB_RETRY_COUNT", "BITRAIL_IB_GID_INDEX"}) {
    EXPECT_NE(text.find(knob), std::string::npos) << text;
  }
  EXPECT_EQ(completion_text(IBV_WC_SUCCESS, 0), "success (0)");
}

}  // namespace
}  // namespace bitrail::transport::verbs
