#include "runtime/transport/verbs/queue_pair.h"

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "runtime/transport/verbs/errors.h"

namespace bitrail::transport::verbs {
namespace {

constexpr uint32_t kReceiveBatch = 16;
constexpr uint32_t kWantedInline = 256;

std::string gid_text(const uint8_t* gid) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET6, gid, text, sizeof(text));
  return text;
}

// libibverbs returns an errno, some providers -1 and errno.
int error_of(int result) {
  if (result < 0) return errno != 0 ? errno : EIO;
  return result;
}

uint32_t clamp_depth(uint32_t wanted, int limit) {
  return limit > 0 ? std::min(wanted, static_cast<uint32_t>(limit)) : wanted;
}

Status initialise(const IbOptions& options, QueuePair* self) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = static_cast<uint16_t>(options.pkey_index);
  attributes.port_num = static_cast<uint8_t>(self->port->number);
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const int error = error_of(table().modify_qp(
      self->qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  if (error == 0) return {};
  return failure(BITRAIL_ERR_SYSTEM, "{}: {}", self->port->name, errno_text("modify_qp", error));
}

// A path on InfiniBand's own subnet goes by LID, all others by GID.
void set_path(const IbOptions& options, const QueuePairFacts& theirs, const QueuePair& self,
              ibv_ah_attr* path) {
  path->sl = static_cast<uint8_t>(options.service_level);
  path->port_num = static_cast<uint8_t>(self.port->number);
  path->dlid = theirs.lid;
  ibv_gid gid;
  memcpy(gid.raw, theirs.gid, sizeof(gid.raw));
  const bool same_subnet = gid.global.subnet_prefix == self.port->gid.global.subnet_prefix;
  if (!self.port->roce && same_subnet) return;
  path->is_global = 1;
  path->grh.dgid = gid;
  path->grh.sgid_index = static_cast<uint8_t>(self.port->gid_index);
  path->grh.hop_limit = 255;
  path->grh.traffic_class = static_cast<uint8_t>(options.traffic_class);
}

int to_ready_to_receive(const IbOptions& options, const QueuePairFacts& theirs, QueuePair* self) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(self->mtu, theirs.mtu));
  attributes.dest_qp_num = theirs.number;
  attributes.rq_psn = theirs.psn;
  // Nobody reads; some devices refuse 0, others more than they have.
  attributes.max_dest_rd_atomic = 1;
  if (self->port->device_attributes.max_qp_rd_atom < 1) attributes.max_dest_rd_atomic = 0;
  attributes.min_rnr_timer = 12;
  set_path(options, theirs, *self, &attributes.ah_attr);
  return error_of(table().modify_qp(self->qp, &attributes,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                        IBV_QP_MIN_RNR_TIMER));
}

int to_ready_to_send(const IbOptions& options, const QueuePairFacts& theirs, QueuePair* self) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<uint8_t>(options.timeout);
  attributes.retry_cnt = static_cast<uint8_t>(options.retry_count);
  attributes.rnr_retry =
      7;  // for ever: receives are counted, so this is for the device's own delays
  attributes.sq_psn = self->psn;
  attributes.max_rd_atomic =
      self->port->device_attributes.max_qp_init_rd_atom < 1 || theirs.reads < 1 ? 0 : 1;
  return error_of(table().modify_qp(self->qp, &attributes,
                                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC));
}

Status create(QueuePair* self) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = self->completions->cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = self->send_depth;
  attributes.cap.max_recv_wr = self->receive_depth;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
  // No device attribute tells how much may go inline.
  for (const uint32_t wanted : {kWantedInline, 64U, 0U}) {
    attributes.cap.max_inline_data = wanted;
    self->qp = table().create_qp(self->port->pd, &attributes);
    if (self->qp != nullptr || (errno != EINVAL && errno != ENOMEM)) break;
  }
  if (self->qp == nullptr) {
    return failure(BITRAIL_ERR_SYSTEM, "{}: a queue pair of {} sends and {} receives: {}",
                   self->port->name, self->send_depth, self->receive_depth,
                   errno_text("create_qp", errno));
  }
  self->inline_bytes = std::min(attributes.cap.max_inline_data, kWantedInline);
  return {};
}

}  // namespace

Status create_queue_pair(const IbOptions& options, const QueuePairSize& size, QueuePair* self) {
  const ibv_device_attr& device = self->port->device_attributes;
  self->send_depth = clamp_depth(size.sends + kSendReserve, device.max_qp_wr);
  self->receive_depth = clamp_depth(size.receives + kReceiveBatch, device.max_qp_wr);
  self->marks.resize(std::bit_ceil(self->send_depth));  // so that the counters may wrap
  self->mtu = static_cast<uint8_t>(self->port->attributes.active_mtu);
  self->weight = std::max(self->port->speed_mbps, 1.0);
  if (getrandom(&self->psn, sizeof(self->psn), 0) != sizeof(self->psn)) {
    return failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", strerror(errno));
  }
  self->psn &= (1U << 24) - 1;
  BITRAIL_TRY(create(self));
  BITRAIL_TRY(initialise(options, self));
  self->missing_receives = self->receive_depth;
  const int error = refill_receives(self, true);
  if (error == 0) return {};
  return failure(BITRAIL_ERR_SYSTEM, "{}: {}", self->port->name, errno_text("post_recv", error));
}

int completions_of(const QueuePairSize& size) {
  return static_cast<int>(size.sends + kSendReserve + size.receives + kReceiveBatch);
}

QueuePairFacts facts_of(const QueuePair& self) {
  QueuePairFacts facts;
  facts.number = self.qp->qp_num;
  facts.psn = self.psn;
  memcpy(facts.gid, self.port->gid.raw, sizeof(facts.gid));
  facts.lid = self.port->attributes.lid;
  facts.mtu = self.mtu;
  facts.roce = self.port->roce ? 1 : 0;
  facts.rail = static_cast<uint8_t>(self.rail);
  facts.reads =
      static_cast<uint8_t>(std::clamp(self.port->device_attributes.max_qp_rd_atom, 0, 255));
  facts.speed_mbps = static_cast<uint32_t>(self.weight);
  return facts;
}

Status connect_queue_pair(const IbOptions& options, const QueuePairFacts& theirs,
                          const std::string& peer, QueuePair* self, bool* again) {
  *again = false;
  if ((theirs.roce != 0) != self->port->roce) {
    return failure(BITRAIL_ERR_CONFIG,
                   "{} is {}, but {} offers {}; choose ports of one kind by BITRAIL_IB_HCA",
                   self->port->name, self->port->roce ? "RoCE" : "InfiniBand", peer,
                   theirs.roce != 0 ? "RoCE" : "InfiniBand");
  }
  int error = 0;
  const char* step = "ready to receive";
  if (!self->ready_to_receive) {
    error = to_ready_to_receive(options, theirs, self);
    self->ready_to_receive = error == 0;
  }
  if (error == 0 && !self->ready_to_send) {
    step = "ready to send";
    error = to_ready_to_send(options, theirs, self);
    self->ready_to_send = error == 0;
  }
  self->weight = std::min(self->weight, static_cast<double>(theirs.speed_mbps));
  if (error == 0) return {};
  *again = error == ETIMEDOUT;
  return failure(BITRAIL_ERR_SYSTEM,
                 "queue pair {} of {} (GID {}: {}, LID {}) to {} (GID {}, LID {}), {}: {}",
                 self->qp->qp_num, self->port->name, self->port->gid_index,
                 gid_text(self->port->gid.raw), self->port->attributes.lid, peer,
                 gid_text(theirs.gid), theirs.lid, step, errno_text("modify_qp", error));
}

void destroy_queue_pair(QueuePair* self) {
  if (self->qp == nullptr) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  table().modify_qp(self->qp, &attributes, IBV_QP_STATE);
  table().destroy_qp(self->qp);
  self->qp = nullptr;
}

int post_send(QueuePair* self, ibv_send_wr* work, bool signaled, uint32_t send_id,
              uint32_t ring_position) {
  if (self->qp == nullptr) return ENOTCONN;
  signaled = signaled || self->unsignaled + 1 >= std::max(self->send_depth / 8, 1U);
  work->wr_id = uint64_t{self->id} << 32 | self->next_mark;
  if (signaled) work->send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int error = error_of(table().post_send(self->qp, work, &bad));
  if (error != 0) return error;
  self->posted++;
  self->unsignaled = signaled ? 0 : self->unsignaled + 1;
  if (signaled) {
    self->marks[self->next_mark++ % self->marks.size()] = {self->posted, send_id, ring_position};
  }
  return 0;
}

bool retire_sends(QueuePair* self, uint64_t wr_id, QueuePair::Mark* mark) {
  if (self->first_mark == self->next_mark || static_cast<uint32_t>(wr_id) != self->first_mark) {
    return false;
  }
  *mark = self->marks[self->first_mark++ % self->marks.size()];
  self->retired = mark->posted;
  return true;
}

int refill_receives(QueuePair* self, bool flush) {
  if (self->qp == nullptr) return 0;
  while (self->missing_receives >= (flush ? 1 : kReceiveBatch)) {
    ibv_recv_wr works[kReceiveBatch] = {};
    const uint32_t count = std::min(self->missing_receives, kReceiveBatch);
    for (uint32_t i = 0; i < count; i++) {
      works[i].wr_id = uint64_t{self->id} << 32;
      works[i].next = i + 1 < count ? &works[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    const int error = error_of(table().post_recv(self->qp, works, &bad));
    if (error != 0) return error;
    self->missing_receives -= count;
  }
  return 0;
}

}  // namespace bitrail::transport::verbs
