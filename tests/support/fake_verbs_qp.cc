// Queue pairs: made, moved through their states, given work.
#include <cerrno>
#include <cstring>

#include "runtime/common/clock.h"
#include "tests/support/fake_verbs_state.h"

namespace bitrail::test::fake {
namespace {

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  const Lock lock(state().spin);
  errno = enter(Call::create_qp, pd->context);
  if (errno != 0) return nullptr;
  const FakeDevice& facts = device_of(pd->context)->facts;
  const ibv_qp_cap& cap = init->cap;
  const auto deepest = static_cast<uint32_t>(facts.max_qp_wr);
  const auto widest = static_cast<uint32_t>(std::min(facts.max_sge, kMaxSge));
  const bool good = init->qp_type == IBV_QPT_RC && init->srq == nullptr &&
                    init->send_cq != nullptr && init->recv_cq != nullptr &&
                    init->send_cq->context == pd->context &&
                    init->recv_cq->context == pd->context && cap.max_send_wr <= deepest &&
                    cap.max_recv_wr <= deepest && cap.max_send_sge <= widest &&
                    cap.max_recv_sge <= widest && cap.max_inline_data <= facts.max_inline;
  if (!good) errno = EINVAL;
  if (good && static_cast<int>(state().qps.size()) >= facts.max_qp) errno = ENOMEM;
  if (errno != 0) return nullptr;
  auto* qp = new Qp;
  qp->context = pd->context;
  qp->pd = pd;
  qp->qp_context = init->qp_context;
  qp->send_cq = init->send_cq;
  qp->recv_cq = init->recv_cq;
  qp->qp_type = init->qp_type;
  qp->qp_num = state().next_qp++;
  qp->state = qp->attr.qp_state = IBV_QPS_RESET;
  qp->cap = cap;
  qp->all_signaled = init->sq_sig_all != 0;
  qp->sends.resize(cap.max_send_wr);
  for (SendWork& work : qp->sends) work.inlined.resize(cap.max_inline_data);
  qp->receives.resize(cap.max_recv_wr);
  static_cast<Pd*>(pd)->users++;
  static_cast<Cq*>(qp->send_cq)->users++;
  static_cast<Cq*>(qp->recv_cq)->users++;
  state().qps[qp->qp_num] = qp;
  state().busy.reserve(state().qps.size());
  state().counters.qps++;
  return qp;
}

void forget_completions(Cq* cq, uint32_t number) {
  size_t kept = 0;
  for (size_t i = 0; i < cq->used; i++) {
    const Completion& each = cq->ring[(cq->first + i) % cq->ring.size()];
    if (each.wc.qp_num != number) cq->ring[(cq->first + kept++) % cq->ring.size()] = each;
  }
  cq->used = kept;
}

void reset(Qp* qp) {
  forget_completions(static_cast<Cq*>(qp->send_cq), qp->qp_num);
  forget_completions(static_cast<Cq*>(qp->recv_cq), qp->qp_num);
  qp->send_posted = qp->send_next = qp->send_freed = 0;
  qp->receive_posted = qp->receive_next = qp->receive_freed = 0;
  qp->packets.clear();
  qp->waiting_since = 0;
}

int destroy_qp(ibv_qp* base) {
  auto* qp = static_cast<Qp*>(base);
  // As the library: waits until events about it were acknowledged.
  const Deadline deadline = Deadline::in_ms(5000);
  for (;;) {
    {
      const Lock lock(state().spin);
      if (qp->unacknowledged == 0) {
        reset(qp);
        forget_events(static_cast<Context*>(qp->context), base);
        static_cast<Pd*>(qp->pd)->users--;
        static_cast<Cq*>(qp->send_cq)->users--;
        static_cast<Cq*>(qp->recv_cq)->users--;
        std::erase(state().busy, qp);
        state().qps.erase(qp->qp_num);
        state().counters.qps--;
        delete qp;
        return 0;
      }
      if (deadline.passed()) {
        state().counters.stuck++;
        return EBUSY;
      }
    }
    std::this_thread::yield();
  }
}

// What a transition needs, and what it may have besides.
struct Masks {
  int needed, optional;
};

// needed -1: no such transition.
Masks masks_of(ibv_qp_state from, ibv_qp_state to) {
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return {IBV_QP_STATE, IBV_QP_CUR_STATE};
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return {kInit, 0};
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return {IBV_QP_STATE, kInit};
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    return {IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
            IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX};
  }
  constexpr int kRts = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    return {IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                IBV_QP_MAX_QP_RD_ATOMIC,
            kRts};
  }
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) return {IBV_QP_STATE, kRts};
  return {-1, 0};
}

// Both an IPv4-mapped address or none of them.
bool mapped(const ibv_gid& gid) {
  static const uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

bool known_gid(const ibv_gid& gid) {
  for (const auto& device : state().devices) {
    for (const FakePort& port : device->facts.ports) {
      for (const FakeGid& each : port.gids) {
        if (memcmp(each.gid.raw, gid.raw, sizeof(gid.raw)) == 0) return true;
      }
    }
  }
  return false;
}

// The path as the kernel resolves it: errno.
int check_path(const Qp* qp, const ibv_ah_attr& path) {
  const FakePort* port = port_of(qp->context, path.port_num);
  if (port == nullptr || path.port_num != qp->attr.port_num || path.sl > 15) return EINVAL;
  if (!port->roce && path.is_global == 0) return path.dlid == 0 ? EINVAL : 0;
  if (path.is_global == 0 || path.grh.sgid_index >= port->gids.size()) return EINVAL;
  if (!port->roce) return 0;
  const ibv_gid& source = port->gids[path.grh.sgid_index].gid;
  if (mapped(source) != mapped(path.grh.dgid)) return ENETUNREACH;
  return known_gid(path.grh.dgid) ? 0 : ETIMEDOUT;
}

int check_values(const Qp* qp, const ibv_qp_attr& a, int mask) {
  const FakeDevice& facts = device_of(qp->context)->facts;
  const int port_number = (mask & IBV_QP_PORT) != 0 ? a.port_num : qp->attr.port_num;
  const FakePort* port = port_of(qp->context, port_number);
  if ((mask & IBV_QP_PORT) != 0 && port == nullptr) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 &&
      (port == nullptr || a.pkey_index >= port->pkeys.size() || port->pkeys[a.pkey_index] == 0)) {
    return EINVAL;
  }
  if ((mask & IBV_QP_PATH_MTU) != 0 &&
      (a.path_mtu < IBV_MTU_256 || port == nullptr || a.path_mtu > port->mtu)) {
    return EINVAL;
  }
  const bool good =
      ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) == 0 || a.max_dest_rd_atomic <= facts.max_rd_atomic) &&
      ((mask & IBV_QP_MAX_QP_RD_ATOMIC) == 0 || a.max_rd_atomic <= facts.max_rd_atomic) &&
      ((mask & IBV_QP_TIMEOUT) == 0 || a.timeout < 32) &&
      ((mask & IBV_QP_RETRY_CNT) == 0 || a.retry_cnt < 8) &&
      ((mask & IBV_QP_RNR_RETRY) == 0 || a.rnr_retry < 8) &&
      ((mask & IBV_QP_MIN_RNR_TIMER) == 0 || a.min_rnr_timer < 32) &&
      ((mask & IBV_QP_RQ_PSN) == 0 || a.rq_psn < 1U << 24) &&
      ((mask & IBV_QP_SQ_PSN) == 0 || a.sq_psn < 1U << 24);
  if (!good) return EINVAL;
  return (mask & IBV_QP_AV) != 0 ? check_path(qp, a.ah_attr) : 0;
}

void take_values(ibv_qp_attr* to, const ibv_qp_attr& from, int mask) {
  if ((mask & IBV_QP_PORT) != 0) to->port_num = from.port_num;
  if ((mask & IBV_QP_PKEY_INDEX) != 0) to->pkey_index = from.pkey_index;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) to->qp_access_flags = from.qp_access_flags;
  if ((mask & IBV_QP_AV) != 0) to->ah_attr = from.ah_attr;
  if ((mask & IBV_QP_PATH_MTU) != 0) to->path_mtu = from.path_mtu;
  if ((mask & IBV_QP_DEST_QPN) != 0) to->dest_qp_num = from.dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) to->rq_psn = from.rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) to->sq_psn = from.sq_psn;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) to->max_dest_rd_atomic = from.max_dest_rd_atomic;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) to->max_rd_atomic = from.max_rd_atomic;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) to->min_rnr_timer = from.min_rnr_timer;
  if ((mask & IBV_QP_TIMEOUT) != 0) to->timeout = from.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) to->retry_cnt = from.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) to->rnr_retry = from.rnr_retry;
}

int modify_qp(ibv_qp* base, ibv_qp_attr* attributes, int mask) {
  const Lock lock(state().spin);
  const int error = enter(Call::modify_qp, base->context);
  if (error != 0) return error;
  auto* qp = static_cast<Qp*>(base);
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes->qp_state : qp->state;
  const Masks masks = masks_of(qp->state, to);
  const int given = mask | IBV_QP_STATE;
  if (masks.needed < 0 || (given & masks.needed) != masks.needed ||
      (given & ~(masks.needed | masks.optional)) != 0) {
    return EINVAL;
  }
  if ((mask & IBV_QP_CUR_STATE) != 0 && attributes->cur_qp_state != qp->state) return EINVAL;
  const int bad = check_values(qp, *attributes, mask);
  if (bad != 0) return bad;
  take_values(&qp->attr, *attributes, mask);
  if (to == IBV_QPS_ERR) {
    fail_qp(qp, -1);
    return 0;
  }
  if (to == IBV_QPS_RESET) reset(qp);
  qp->state = qp->attr.qp_state = to;
  if (!state().reordering) deliver_all(false);  // others may have waited for it
  return 0;
}

int query_qp(ibv_qp* base, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* init) {
  const Lock lock(state().spin);
  const auto* qp = static_cast<const Qp*>(base);
  *attributes = qp->attr;
  attributes->cur_qp_state = qp->state;
  attributes->cap = qp->cap;
  memset(init, 0, sizeof(*init));
  init->qp_context = qp->qp_context;
  init->send_cq = qp->send_cq;
  init->recv_cq = qp->recv_cq;
  init->cap = qp->cap;
  init->qp_type = qp->qp_type;
  init->sq_sig_all = qp->all_signaled ? 1 : 0;
  return 0;
}

int take_send(Qp* qp, const ibv_send_wr& wr) {
  const bool inlined = (wr.send_flags & IBV_SEND_INLINE) != 0;
  switch (wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      break;
    case IBV_WR_RDMA_READ:
      if (!inlined) break;
      [[fallthrough]];
    default:
      return EINVAL;
  }
  if (wr.num_sge < 0 || wr.num_sge > static_cast<int>(qp->cap.max_send_sge)) return EINVAL;
  if (qp->send_posted - qp->send_freed >= qp->sends.size()) return ENOMEM;
  uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; i++) bytes += wr.sg_list[i].length;
  if (inlined && bytes > qp->cap.max_inline_data) return EINVAL;
  SendWork& work = qp->sends[qp->send_posted % qp->sends.size()];
  work.wr = wr;
  work.wr.next = nullptr;
  work.wr.sg_list = work.sges.data();
  work.bytes = bytes;
  work.scattered = false;
  size_t at = 0;
  for (int i = 0; i < wr.num_sge; i++) {
    work.sges[i] = wr.sg_list[i];
    if (!inlined || wr.sg_list[i].length == 0) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    memcpy(work.inlined.data() + at, reinterpret_cast<const void*>(wr.sg_list[i].addr),
           wr.sg_list[i].length);
    at += wr.sg_list[i].length;
  }
  qp->send_posted++;
  return 0;
}

int post_send(ibv_qp* base, ibv_send_wr* work, ibv_send_wr** bad) {
  const Lock lock(state().spin);
  auto* qp = static_cast<Qp*>(base);
  int error = enter(Call::post_send, base->context);
  if (error == 0 && qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) error = EINVAL;
  for (; work != nullptr; work = work->next) {
    if (error == 0) error = take_send(qp, *work);
    if (error != 0) {
      *bad = work;
      break;
    }
    if (qp->state == IBV_QPS_ERR) flush_send(qp);
  }
  deliver(qp);
  return error;
}

int post_recv(ibv_qp* base, ibv_recv_wr* work, ibv_recv_wr** bad) {
  const Lock lock(state().spin);
  auto* qp = static_cast<Qp*>(base);
  int error = enter(Call::post_recv, base->context);
  if (error == 0 && qp->state == IBV_QPS_RESET) error = EINVAL;
  for (; work != nullptr; work = work->next) {
    if (error == 0 &&
        (work->num_sge < 0 || work->num_sge > static_cast<int>(qp->cap.max_recv_sge))) {
      error = EINVAL;
    }
    if (error == 0 && qp->receive_posted - qp->receive_freed >= qp->receives.size()) error = ENOMEM;
    if (error != 0) {
      *bad = work;
      break;
    }
    RecvWork& taken = qp->receives[qp->receive_posted++ % qp->receives.size()];
    taken.wr_id = work->wr_id;
    taken.count = work->num_sge;
    for (int i = 0; i < work->num_sge; i++) taken.sges[i] = work->sg_list[i];
    if (qp->state == IBV_QPS_ERR) flush_receive(qp);
  }
  if (!state().reordering) deliver_all(false);  // a sender may have waited for it
  return error;
}

}  // namespace

void fill_queue_pairs(transport::verbs::Table* table) {
  table->create_qp = create_qp;
  table->modify_qp = modify_qp;
  table->query_qp = query_qp;
  table->destroy_qp = destroy_qp;
  table->post_send = post_send;
  table->post_recv = post_recv;
}

}  // namespace bitrail::test::fake
