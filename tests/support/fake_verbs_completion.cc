// Completion queues and channels.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/fake_verbs_state.h"

namespace bitrail::test::fake {
namespace {

ibv_comp_channel* create_channel(ibv_context* context) {
  const Lock lock(state().spin);
  errno = enter(Call::create_channel, context);
  if (errno != 0) return nullptr;
  const int fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (fd < 0) return nullptr;
  auto* channel = new Channel;
  channel->context = context;
  channel->fd = fd;
  state().channels.push_back(channel);
  state().counters.channels++;
  return channel;
}

int destroy_channel(ibv_comp_channel* channel) {
  const Lock lock(state().spin);
  if (channel->refcnt > 0) {
    state().counters.stuck++;
    return EBUSY;
  }
  std::erase(state().channels, static_cast<Channel*>(channel));
  state().counters.channels--;
  close(channel->fd);
  delete static_cast<Channel*>(channel);
  return 0;
}

ibv_cq* create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                  int vector) {
  const Lock lock(state().spin);
  errno = enter(Call::create_cq, context);
  if (errno == 0 && (entries < 1 || entries > device_of(context)->facts.max_cqe || vector != 0)) {
    errno = EINVAL;
  }
  if (errno == 0 && channel != nullptr && channel->context != context) errno = EINVAL;
  if (errno != 0) return nullptr;
  auto* cq = new Cq;
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = user;
  cq->cqe = entries;
  cq->ring.resize(entries);
  if (channel != nullptr) channel->refcnt++;
  state().cqs.push_back(cq);
  state().counters.cqs++;
  return cq;
}

int destroy_cq(ibv_cq* base) {
  const Lock lock(state().spin);
  auto* cq = static_cast<Cq*>(base);
  if (cq->users > 0 || cq->unacknowledged > 0) {  // the library would wait for ever
    state().counters.stuck++;
    return EBUSY;
  }
  if (cq->channel != nullptr) {
    auto* channel = static_cast<Channel*>(cq->channel);
    for (size_t gone = std::erase(channel->events, cq); gone > 0; gone--) drain_fd(channel->fd);
    channel->refcnt--;
  }
  forget_events(static_cast<Context*>(cq->context), base);
  std::erase(state().cqs, cq);
  state().counters.cqs--;
  delete cq;
  return 0;
}

// Completions that came before do not ring: the caller polls once more after arming.
int req_notify_cq(ibv_cq* cq, int solicited_only) {
  const Lock lock(state().spin);
  const int error = enter(Call::req_notify_cq, cq->context);
  if (error != 0) return error;
  static_cast<Cq*>(cq)->armed = solicited_only != 0 ? Cq::solicited : Cq::any;
  if (state().reordering) deliver_all(true);  // nobody may poll for a while
  return 0;
}

int get_cq_event(ibv_comp_channel* base, ibv_cq** cq, void** user) {
  auto* channel = static_cast<Channel*>(base);
  for (;;) {
    uint64_t one = 0;
    if (read(channel->fd, &one, sizeof(one)) < 0) return -1;
    const Lock lock(state().spin);
    if (channel->events.empty()) continue;  // its queue went meanwhile
    Cq* first = channel->events.front();
    channel->events.pop_front();
    first->unacknowledged++;
    *cq = first;
    *user = first->cq_context;
    return 0;
  }
}

void ack_cq_events(ibv_cq* cq, unsigned count) {
  const Lock lock(state().spin);
  static_cast<Cq*>(cq)->unacknowledged -= static_cast<int>(count);
}

int poll_cq(ibv_cq* base, int entries, ibv_wc* completions) {
  const Lock lock(state().spin);
  auto* cq = static_cast<Cq*>(base);
  deliver_all(false);
  if (cq->overrun) return -1;
  int taken = 0;
  for (; taken < entries && cq->used > 0; taken++) {
    const Completion& next = cq->ring[cq->first];
    completions[taken] = next.wc;
    const auto found = state().qps.find(next.wc.qp_num);
    if (found != state().qps.end()) {
      Qp* qp = found->second;
      (next.receive ? qp->receive_freed : qp->send_freed) = next.slot + 1;
    }
    cq->first = (cq->first + 1) % cq->ring.size();
    cq->used--;
  }
  return taken;
}

}  // namespace

void complete(Cq* cq, const ibv_wc& wc, uint64_t slot, bool receive, bool solicited) {
  if (cq->overrun) return;
  if (cq->used == cq->ring.size()) {
    cq->overrun = true;
    state().counters.overruns++;
    ibv_async_event event{};
    event.event_type = IBV_EVENT_CQ_ERR;
    event.element.cq = cq;
    post_event(static_cast<Context*>(cq->context), event);
    return;
  }
  cq->ring[(cq->first + cq->used++) % cq->ring.size()] = {wc, slot, receive};
  if (cq->armed == Cq::no || cq->channel == nullptr) return;
  if (cq->armed == Cq::solicited && !solicited && wc.status == IBV_WC_SUCCESS) return;
  cq->armed = Cq::no;
  static_cast<Channel*>(cq->channel)->events.push_back(cq);
  state().counters.notifications++;
  signal_fd(cq->channel->fd);
}

void fill_completions(transport::verbs::Table* table) {
  table->create_comp_channel = create_channel;
  table->destroy_comp_channel = destroy_channel;
  table->create_cq = create_cq;
  table->destroy_cq = destroy_cq;
  table->req_notify_cq = req_notify_cq;
  table->get_cq_event = get_cq_event;
  table->ack_cq_events = ack_cq_events;
  table->poll_cq = poll_cq;
}

}  // namespace bitrail::test::fake
