// What goes between two queue pairs, and how work ends.
#include <algorithm>
#include <cstring>

#include "runtime/common/clock.h"
#include "tests/support/fake_verbs_state.h"

namespace bitrail::test::fake {
namespace {

constexpr uint32_t kNonsense = 0xdeadbeef;
constexpr size_t kWindow = 16;  // work requests whose data is on its way at once

SendWork& at(Qp* qp, uint64_t slot) { return qp->sends[slot % qp->sends.size()]; }

// A completion with only what every completion defines.
ibv_wc blank(const Qp* qp, uint64_t wr_id, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.opcode = IBV_WC_TSO;
  wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x80 + static_cast<uint32_t>(status);
  wc.byte_len = kNonsense;
  wc.imm_data = kNonsense;
  wc.qp_num = qp->qp_num;
  wc.src_qp = kNonsense;
  wc.wc_flags = status == IBV_WC_SUCCESS ? 0 : kNonsense;
  return wc;
}

ibv_wc_opcode opcode_of(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND : IBV_WC_RDMA_WRITE;
}

// Pollers of memory see words whole and in ascending order, as a card's writes are.
void store(uint64_t to, const uint8_t* from, size_t bytes) {
  auto* target = reinterpret_cast<uint8_t*>(to);  // NOLINT(performance-no-int-to-ptr)
  while (bytes > 0 && (to % 8 != 0 || bytes < 8)) {
    __atomic_store_n(target++, *from++, __ATOMIC_RELEASE);
    to++;
    bytes--;
  }
  for (; bytes >= 8; bytes -= 8, target += 8, from += 8) {
    uint64_t word;
    memcpy(&word, from, sizeof(word));
    __atomic_store_n(reinterpret_cast<uint64_t*>(target), word, __ATOMIC_RELEASE);
  }
  for (; bytes > 0; bytes--) __atomic_store_n(target++, *from++, __ATOMIC_RELEASE);
}

// Bytes offset.. of the work's source, wherever they are.
void copy_out(const SendWork& work, size_t offset, size_t bytes, uint64_t to) {
  if ((work.wr.send_flags & IBV_SEND_INLINE) != 0) {
    store(to, work.inlined.data() + offset, bytes);
    return;
  }
  for (int i = 0; i < work.wr.num_sge && bytes > 0; i++) {
    const ibv_sge& part = work.sges[i];
    if (offset >= part.length) {
      offset -= part.length;
      continue;
    }
    const size_t now = std::min(bytes, part.length - offset);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    store(to, reinterpret_cast<const uint8_t*>(part.addr + offset), now);
    to += now;
    bytes -= now;
    offset = 0;
  }
}

bool local_ok(const Qp* qp, const ibv_sge* sges, int count, int access) {
  return std::all_of(sges, sges + count, [&](const ibv_sge& part) {
    return part.length == 0 ||
           find_local(qp->pd, part.lkey, part.addr, part.length, access) != nullptr;
  });
}

bool active(const Qp* qp) {
  const FakePort* port = port_of(qp->context, qp->attr.port_num);
  return !device_of(qp->context)->removed && port != nullptr && port->state == IBV_PORT_ACTIVE;
}

bool reaches(const Qp* from, const Qp* to) {
  const ibv_ah_attr& path = from->attr.ah_attr;
  const FakePort* port = port_of(to->context, to->attr.port_num);
  if (path.is_global == 0) return port->lid == path.dlid;
  return std::any_of(port->gids.begin(), port->gids.end(), [&](const FakeGid& each) {
    return memcmp(each.gid.raw, path.grh.dgid.raw, sizeof(each.gid.raw)) == 0;
  });
}

// Null: nobody answers.
Qp* find_peer(const Qp* qp) {
  const auto found = state().qps.find(qp->attr.dest_qp_num);
  if (found == state().qps.end() || !active(qp)) return nullptr;
  Qp* peer = found->second;
  const bool ready = peer->state == IBV_QPS_RTR || peer->state == IBV_QPS_RTS;
  const bool answers = ready && active(peer) && peer->attr.dest_qp_num == qp->qp_num &&
                       peer->attr.rq_psn == qp->attr.sq_psn && reaches(qp, peer) &&
                       reaches(peer, qp);
  return answers ? peer : nullptr;
}

// INT64_MAX: for ever.
int64_t patience_ns(const Qp* qp) {
  if (qp->waiting_for_receive) {
    if (qp->attr.rnr_retry == 7) return INT64_MAX;
    return state().retry_ns >= 0 ? state().retry_ns : 1'000'000 * (qp->attr.rnr_retry + 1);
  }
  if (state().retry_ns >= 0) return state().retry_ns;
  if (qp->attr.timeout == 0) return INT64_MAX;
  return (int64_t{4096} << qp->attr.timeout) * (qp->attr.retry_cnt + 1);
}

// False: it failed.
bool wait(Qp* qp, bool for_receive) {
  const int64_t now = now_ns();
  if (qp->waiting_since == 0 || qp->waiting_for_receive != for_receive) {
    if (for_receive) state().counters.waits_for_receive++;
    qp->waiting_since = now;
    qp->waiting_for_receive = for_receive;
  }
  const int64_t patience = patience_ns(qp);
  if (patience == INT64_MAX || now - qp->waiting_since <= patience) return true;
  complete_send(qp, for_receive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR);
  return false;
}

// What the responder says of a one-sided access.
ibv_wc_status check_remote(const Qp* qp, const Qp* peer, const SendWork& work) {
  const bool read = work.wr.opcode == IBV_WR_RDMA_READ;
  const int access = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (read && (qp->attr.max_rd_atomic == 0 || peer->attr.max_dest_rd_atomic == 0)) {
    return IBV_WC_REM_INV_REQ_ERR;
  }
  if (work.bytes > port_of(qp->context, qp->attr.port_num)->max_message) return IBV_WC_LOC_LEN_ERR;
  if ((peer->attr.qp_access_flags & static_cast<unsigned>(access)) == 0) {
    return IBV_WC_REM_ACCESS_ERR;
  }
  if (work.bytes == 0) return IBV_WC_SUCCESS;
  const auto& rdma = work.wr.wr.rdma;
  return find_remote(peer->pd, rdma.rkey, rdma.remote_addr, work.bytes, access) != nullptr
             ? IBV_WC_SUCCESS
             : IBV_WC_REM_ACCESS_ERR;
}

bool one_sided(const SendWork& work) {
  return work.wr.opcode == IBV_WR_RDMA_WRITE || work.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
         work.wr.opcode == IBV_WR_RDMA_READ;
}

// Both sides' checks of the work at `slot`, without a change.
ibv_wc_status check(const Qp* qp, const Qp* peer, const SendWork& work) {
  const bool read = work.wr.opcode == IBV_WR_RDMA_READ;
  if ((work.wr.send_flags & IBV_SEND_INLINE) == 0 &&
      !local_ok(qp, work.sges.data(), work.wr.num_sge, read ? IBV_ACCESS_LOCAL_WRITE : 0)) {
    return IBV_WC_LOC_PROT_ERR;
  }
  return one_sided(work) ? check_remote(qp, peer, work) : IBV_WC_SUCCESS;
}

// The head of the queue fails, and the peer with it where it saw the mistake.
void fail_head(Qp* qp, Qp* peer, ibv_wc_status status) {
  if (peer != nullptr && peer != qp && status == IBV_WC_REM_ACCESS_ERR) {
    fail_qp(peer, IBV_EVENT_QP_ACCESS_ERR);
  }
  if (peer != nullptr && peer != qp && status == IBV_WC_REM_INV_REQ_ERR) {
    fail_qp(peer, IBV_EVENT_QP_REQ_ERR);
  }
  complete_send(qp, status);
}

void read_remote(const SendWork& work) {
  uint64_t from = work.wr.wr.rdma.remote_addr;
  for (int i = 0; i < work.wr.num_sge; i++) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    store(work.sges[i].addr, reinterpret_cast<const uint8_t*>(from), work.sges[i].length);
    from += work.sges[i].length;
  }
}

// A message into the posted receive. False: the queue pairs failed.
bool send_into(Qp* qp, Qp* peer, const SendWork& work) {
  const RecvWork& receive = peer->receives[peer->receive_next % peer->receives.size()];
  uint64_t room = 0;
  for (int i = 0; i < receive.count; i++) room += receive.sges[i].length;
  ibv_wc_status here = IBV_WC_SUCCESS;
  if (work.bytes > room) {
    here = IBV_WC_LOC_LEN_ERR;
  } else if (!local_ok(peer, receive.sges.data(), receive.count, IBV_ACCESS_LOCAL_WRITE)) {
    here = IBV_WC_LOC_PROT_ERR;
  }
  if (here != IBV_WC_SUCCESS) {
    complete_receive(peer, here, {}, false);
    if (qp == peer) return false;  // flushed with it
    complete_send(qp, here == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
    return false;
  }
  size_t offset = 0;
  for (int i = 0; i < receive.count && offset < work.bytes; i++) {
    const size_t now = std::min<size_t>(receive.sges[i].length, work.bytes - offset);
    copy_out(work, offset, now, receive.sges[i].addr);
    offset += now;
  }
  return true;
}

void tell_receiver(Qp* qp, Qp* peer, const SendWork& work) {
  const bool write = work.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  ibv_wc facts{};
  facts.opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  facts.byte_len = static_cast<uint32_t>(work.bytes);
  facts.src_qp = qp->qp_num;
  if (write || work.wr.opcode == IBV_WR_SEND_WITH_IMM) {
    facts.wc_flags = IBV_WC_WITH_IMM;
    facts.imm_data = work.wr.imm_data;
  }
  complete_receive(peer, IBV_WC_SUCCESS, facts, (work.wr.send_flags & IBV_SEND_SOLICITED) != 0);
}

bool is_write(const SendWork& work) {
  return work.wr.opcode == IBV_WR_RDMA_WRITE || work.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// Puts the data of writes that may go ahead on its way.
void scatter(Qp* qp, const Qp* peer) {
  const size_t piece = size_t{128} << qp->attr.path_mtu;
  const uint64_t end = std::min(qp->send_posted, qp->send_next + kWindow);
  for (uint64_t slot = qp->send_next; slot < end; slot++) {
    SendWork& work = at(qp, slot);
    if (!is_write(work)) break;
    if (work.scattered) continue;
    if (check(qp, peer, work) != IBV_WC_SUCCESS) break;  // told when it is its turn
    work.scattered = true;
    for (size_t offset = 0; offset < work.bytes; offset += piece) {
      qp->packets.push_back({slot, offset, std::min(piece, work.bytes - offset)});
    }
  }
}

// Lands up to `count` packets. False: a key is not valid any more.
bool land(Qp* qp, Qp* peer, size_t count) {
  for (; count > 0 && !qp->packets.empty(); count--) {
    std::swap(qp->packets[state().random() % qp->packets.size()], qp->packets.back());
    const Packet packet = qp->packets.back();
    qp->packets.pop_back();
    const SendWork& work = at(qp, packet.slot);
    const ibv_wc_status status = check(qp, peer, work);
    if (status != IBV_WC_SUCCESS) {
      fail_head(qp, peer, status);
      return false;
    }
    copy_out(work, packet.offset, packet.bytes, work.wr.wr.rdma.remote_addr + packet.offset);
  }
  return true;
}

// The work at the head. False: it waits or failed.
bool step(Qp* qp, bool everything) {
  Qp* peer = find_peer(qp);
  if (peer == nullptr) {
    wait(qp, false);
    return false;
  }
  if (state().reordering) {
    scatter(qp, peer);
    const size_t most = qp->packets.size();
    const size_t count = everything ? most : state().random() % (most + 1);
    if (!land(qp, peer, count)) return false;
  }
  const SendWork& work = at(qp, qp->send_next);
  const bool late = std::any_of(qp->packets.begin(), qp->packets.end(),
                                [&](const Packet& packet) { return packet.slot == qp->send_next; });
  if (late) return false;
  const ibv_wc_status status = check(qp, peer, work);
  if (status != IBV_WC_SUCCESS) {
    fail_head(qp, peer, status);
    return false;
  }
  const bool takes = work.wr.opcode != IBV_WR_RDMA_WRITE && work.wr.opcode != IBV_WR_RDMA_READ;
  if (takes && peer->receive_next == peer->receive_posted) {
    wait(qp, true);
    return false;
  }
  qp->waiting_since = 0;
  if (work.wr.opcode == IBV_WR_RDMA_READ) {
    read_remote(work);
  } else if (!is_write(work)) {
    if (!send_into(qp, peer, work)) return false;
  } else if (!work.scattered && work.bytes > 0) {
    copy_out(work, 0, work.bytes, work.wr.wr.rdma.remote_addr);
  }
  state().counters.delivered++;
  state().counters.delivered_bytes += work.bytes;
  if (takes) tell_receiver(qp, peer, work);
  complete_send(qp, IBV_WC_SUCCESS);
  return true;
}

bool pending(const Qp* qp) { return qp->state == IBV_QPS_RTS && qp->send_next < qp->send_posted; }

void remember(Qp* qp) {
  if (!pending(qp) || qp->queued) return;
  qp->queued = true;
  state().busy.push_back(qp);
}

void run(Qp* qp, bool everything) {
  while (pending(qp)) {
    if (state().reordering && !everything && state().random() % 2 == 0) break;
    const size_t before = qp->packets.size();
    if (!step(qp, everything) && (!everything || qp->packets.size() == before)) break;
  }
  remember(qp);
}

}  // namespace

void complete_send(Qp* qp, ibv_wc_status status) {
  const uint64_t slot = qp->send_next++;
  const ibv_send_wr& wr = at(qp, slot).wr;
  ibv_wc wc = blank(qp, wr.wr_id, status);
  const bool good = status == IBV_WC_SUCCESS;
  if (good) wc.opcode = opcode_of(wr.opcode);
  if (good && wr.opcode == IBV_WR_RDMA_READ) {
    wc.byte_len = static_cast<uint32_t>(at(qp, slot).bytes);
  }
  if (!good || qp->all_signaled || (wr.send_flags & IBV_SEND_SIGNALED) != 0) {
    complete(static_cast<Cq*>(qp->send_cq), wc, slot, false, false);
  }
  if (!good && status != IBV_WC_WR_FLUSH_ERR) fail_qp(qp, -1);
}

void complete_receive(Qp* qp, ibv_wc_status status, const ibv_wc& facts, bool solicited) {
  const uint64_t slot = qp->receive_next++;
  ibv_wc wc = blank(qp, qp->receives[slot % qp->receives.size()].wr_id, status);
  if (status == IBV_WC_SUCCESS) {
    wc.opcode = facts.opcode;
    wc.byte_len = facts.byte_len;
    wc.src_qp = facts.src_qp;
    wc.wc_flags = facts.wc_flags;
    if (facts.wc_flags != 0) wc.imm_data = facts.imm_data;
  }
  complete(static_cast<Cq*>(qp->recv_cq), wc, slot, true, solicited);
  if (status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR) fail_qp(qp, -1);
}

void flush_send(Qp* qp) {
  while (qp->send_next < qp->send_posted) complete_send(qp, IBV_WC_WR_FLUSH_ERR);
}

void flush_receive(Qp* qp) {
  while (qp->receive_next < qp->receive_posted) {
    complete_receive(qp, IBV_WC_WR_FLUSH_ERR, {}, false);
  }
}

void fail_qp(Qp* qp, int event) {
  if (qp->state == IBV_QPS_RESET) return;
  const bool already = qp->state == IBV_QPS_ERR;
  qp->state = qp->attr.qp_state = IBV_QPS_ERR;
  qp->packets.clear();
  flush_send(qp);
  flush_receive(qp);
  if (event < 0 || already) return;
  ibv_async_event told{};
  told.event_type = static_cast<ibv_event_type>(event);
  told.element.qp = qp;
  post_event(static_cast<Context*>(qp->context), told);
}

void deliver(Qp* qp) {
  if (state().reordering) {
    remember(qp);
  } else {
    run(qp, false);
  }
}

void deliver_all(bool everything) {
  State& s = state();
  if (s.busy.empty()) return;
  if (s.reordering) std::shuffle(s.busy.begin(), s.busy.end(), s.random);
  // run() puts back what still waits, behind those of this round.
  for (size_t left = s.busy.size(); left > 0; left--) {
    Qp* qp = s.busy.front();
    s.busy.erase(s.busy.begin());
    qp->queued = false;
    run(qp, everything);
  }
}

}  // namespace bitrail::test::fake
