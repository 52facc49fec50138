// Two connected queue pairs of the fake, for tests that use it directly.
#pragma once

#include <gtest/gtest.h>

#include "runtime/common/clock.h"

#include <vector>

#include "tests/support/fake_verbs.h"

namespace bitrail::test {

inline const transport::verbs::Table& verbs() { return transport::verbs::table(); }

// A device opened, with a registered buffer and one queue pair.
struct End {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(1 << 16);
  ibv_mr* mr = nullptr;
  ibv_gid gid{};

  explicit End(int device, int entries = 64, uint32_t depth = 16) {
    ibv_device** list = verbs().get_device_list(nullptr);
    context = verbs().open_device(list[device]);
    verbs().free_device_list(list);
    pd = verbs().alloc_pd(context);
    channel = verbs().create_comp_channel(context);
    cq = verbs().create_cq(context, entries, nullptr, channel, 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {depth, depth, 4, 4, 64};
    qp = verbs().create_qp(pd, &init);
    mr = verbs().reg_mr(pd, bytes.data(), bytes.size(),
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    verbs().query_gid(context, 1, 3, &gid);
  }
  ~End() {
    EXPECT_EQ(verbs().destroy_qp(qp), 0);
    EXPECT_EQ(verbs().destroy_cq(cq), 0);
    EXPECT_EQ(verbs().destroy_comp_channel(channel), 0);
    if (mr != nullptr) {
      EXPECT_EQ(verbs().dereg_mr(mr), 0);
    }
    EXPECT_EQ(verbs().dealloc_pd(pd), 0);
    EXPECT_EQ(verbs().close_device(context), 0);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  int to_init() const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return verbs().modify_qp(qp, &a,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  static constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ibv_qp_attr rtr(const End& peer) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer.qp->qp_num;
    a.rq_psn = peer.qp->qp_num + 7;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.dgid = peer.gid;
    a.ah_attr.grh.sgid_index = 3;
    a.ah_attr.port_num = 1;
    return a;
  }
  static constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  ibv_qp_attr rts(uint8_t rnr_retry = 7) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 20;
    a.retry_cnt = 7;
    a.rnr_retry = rnr_retry;
    a.sq_psn = qp->qp_num + 7;
    a.max_rd_atomic = 4;
    return a;
  }
  void connect(const End& peer, uint8_t rnr_retry = 7) const {
    ASSERT_EQ(to_init(), 0);
    ibv_qp_attr a = rtr(peer);
    ASSERT_EQ(verbs().modify_qp(qp, &a, kRtrMask), 0);
    a = rts(rnr_retry);
    ASSERT_EQ(verbs().modify_qp(qp, &a, kRtsMask), 0);
  }

  int receive(uint64_t id, size_t offset = 0, uint32_t size = 0) const {
    ibv_sge sge{reinterpret_cast<uint64_t>(bytes.data()) + offset, size, mr->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = size > 0 ? 1 : 0;
    return verbs().post_recv(qp, &wr, &bad);
  }
  // Change what is in `wr` before it is posted by `adjust`.
  template <typename Adjust>
  int send(ibv_wr_opcode opcode, uint64_t id, const End& peer, size_t offset, uint32_t size,
           Adjust adjust) const {
    ibv_sge sge{reinterpret_cast<uint64_t>(bytes.data()) + offset, size, mr->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = size > 0 ? 1 : 0;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = static_cast<uint32_t>(id) + 1000;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(peer.bytes.data()) + offset;
    wr.wr.rdma.rkey = peer.mr->rkey;
    adjust(&wr);
    return verbs().post_send(qp, &wr, &bad);
  }
  int send(ibv_wr_opcode opcode, uint64_t id, const End& peer, size_t offset, uint32_t size) const {
    return send(opcode, id, peer, offset, size, [](ibv_send_wr*) {});
  }

  std::vector<ibv_wc> poll(int most = 64) const {
    std::vector<ibv_wc> got(most);
    const int count = verbs().poll_cq(cq, most, got.data());
    got.resize(count < 0 ? 0 : count);
    return got;
  }
  // One completion with this id and status, and nothing else.
  void expect(uint64_t id, ibv_wc_status status) const {
    const std::vector<ibv_wc> got = poll();
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].wr_id, id);
    EXPECT_EQ(got[0].status, status) << ibv_wc_status_str(got[0].status);
  }
};

inline FakeDevice fake_device(const std::string& name) {
  FakeDevice made;
  made.name = name;
  return made;
}

}  // namespace bitrail::test
