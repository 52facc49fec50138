#include "runtime/transport/ucx/worker.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/trace/log.h"
#include "runtime/transport/interfaces.h"
#include "runtime/transport/ucx/descriptors.h"
#include "runtime/transport/ucx/endpoint.h"
#include "runtime/transport/ucx/library.h"
#include "runtime/transport/ucx/listener.h"
#include "runtime/transport/ucx/receiver.h"
#include "runtime/transport/ucx/sender.h"

namespace bitrail::transport::ucx {
namespace {

constexpr int64_t kSettleNs = 100'000'000;  // for setting up an endpoint between hosts

}  // namespace

// The active messages' entry points. A header of the wrong size or an id that names nothing is
// dropped: it comes from a stranger or from a connection that is gone.
struct Handlers {
  static ucs_status_t data(void* worker, const void* header, size_t header_bytes, void* data,
                           size_t bytes, const ucp_am_recv_param_t* param) {
    DataHeader parsed;
    if (!parse_header(header, header_bytes, &parsed)) return UCS_OK;
    UcxReceiver* receiver = static_cast<Worker*>(worker)->connections.find(parsed.connection);
    if (receiver == nullptr) return UCS_OK;
    return receiver->arrived(parsed, data, bytes, param->recv_attr);
  }

  static ucs_status_t brief(void* worker, const void* /*header*/, size_t header_bytes, void* data,
                            size_t bytes, const ucp_am_recv_param_t* param) {
    DataHeader parsed;
    uint8_t* message = nullptr;
    if (header_bytes != 0 || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
    if (!parse_brief(data, bytes, &parsed, &message)) return UCS_OK;
    UcxReceiver* receiver = static_cast<Worker*>(worker)->connections.find(parsed.connection);
    if (receiver != nullptr) receiver->arrived_brief(parsed, message, bytes - sizeof(DataHeader));
    return UCS_OK;
  }

  static ucs_status_t request(void* worker, const void* header, size_t header_bytes, void* /*data*/,
                              size_t /*bytes*/, const ucp_am_recv_param_t* param) {
    RequestHeader parsed;
    if (!parse_header(header, header_bytes, &parsed)) return UCS_OK;
    auto* self = static_cast<Worker*>(worker);
    UcxReceiver* receiver = self->connections.find(parsed.connection);
    if (receiver != nullptr) {
      receiver->requested(parsed);
    } else if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
      const GrantHeader refusal{parsed.send_id, 0, kGone, 0};
      self->reply(param->reply_ep, kGrant, &refusal, sizeof(refusal));
    }
    return UCS_OK;
  }

  static ucs_status_t grant(void* worker, const void* header, size_t header_bytes, void* /*data*/,
                            size_t /*bytes*/, const ucp_am_recv_param_t* /*param*/) {
    GrantHeader parsed;
    if (!parse_header(header, header_bytes, &parsed)) return UCS_OK;
    SendOp* op = static_cast<Worker*>(worker)->long_sends.find(parsed.send_id);
    if (op != nullptr) op->owner->granted(op, parsed);
    return UCS_OK;
  }

  static ucs_status_t chunk(void* worker, const void* header, size_t header_bytes, void* data,
                            size_t bytes, const ucp_am_recv_param_t* param) {
    ChunkHeader parsed;
    if (!parse_header(header, header_bytes, &parsed)) return UCS_OK;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
    Slot* slot = static_cast<Worker*>(worker)->chunked.find(parsed.receive_id);
    if (slot != nullptr) slot->op->owner->chunk(slot, parsed, data, bytes);
    return UCS_OK;
  }

  static ucs_status_t fence(void* worker, const void* header, size_t header_bytes, void* /*data*/,
                            size_t /*bytes*/, const ucp_am_recv_param_t* param) {
    FenceHeader parsed;
    if (!parse_header(header, header_bytes, &parsed)) return UCS_OK;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return UCS_OK;
    static_cast<Worker*>(worker)->reply(param->reply_ep, kFenced, &parsed, sizeof(parsed));
    return UCS_OK;
  }

  static ucs_status_t fenced(void* worker, const void* /*header*/, size_t /*header_bytes*/,
                             void* /*data*/, size_t /*bytes*/,
                             const ucp_am_recv_param_t* /*param*/) {
    auto* self = static_cast<Worker*>(worker);
    self->fences_answered_++;
    self->moved++;
    return UCS_OK;
  }
};

Worker::~Worker() {
  close();
  if (event_fd_ >= 0) ::close(event_fd_);
  if (holds_library_) release_library();
}

Status Worker::open(const Options& options, std::shared_ptr<Worker>* worker) {
  BITRAIL_TRY(require_files(kWorkerFiles));
  std::shared_ptr<Worker> made(new Worker);
  made->options_ = options;
  acquire_library();
  made->holds_library_ = true;
  std::string interface;
  if (!options.bind_address.empty()) {
    Interface chosen;
    BITRAIL_TRY(choose_interface(options.bind_address, &chosen));
    if (!chosen.loopback) interface = chosen.name;
  }
  BITRAIL_TRY(create_context(interface, &made->context_, &made->has_cma_, &made->transports_));
  BITRAIL_TRY(made->open_worker());
  *worker = std::move(made);
  return {};
}

Status Worker::open_worker() {
  if (getrandom(&nonce_, sizeof(nonce_), 0) != sizeof(nonce_)) {
    return failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", strerror(errno));
  }
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(context_, &params, &ucp_);
  if (status != UCS_OK) {
    ucp_ = nullptr;
    return failure(BITRAIL_ERR_SYSTEM,
                   "UCX cannot make a worker: {}; see UCX_TLS and `ulimit -n` (open files)",
                   ucs_status_string(status));
  }
  BITRAIL_TRY(set_handlers());
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  status = ucp_worker_get_address(ucp_, &address, &bytes);
  if (status != UCS_OK) {
    return failure(BITRAIL_ERR_SYSTEM, "UCX has no address: {}", ucs_status_string(status));
  }
  const auto* begin = reinterpret_cast<const uint8_t*>(address);
  address_.assign(begin, begin + bytes);
  ucp_worker_release_address(ucp_, address);

  int ucx_fd = -1;
  status = ucp_worker_get_efd(ucp_, &ucx_fd);
  if (status != UCS_OK) {
    return failure(BITRAIL_ERR_SYSTEM, "UCX has no event descriptor: {}",
                   ucs_status_string(status));
  }
  BITRAIL_TRY(poller_.open());
  event_fd_ = epoll_create1(EPOLL_CLOEXEC);
  epoll_event entry{};
  entry.events = EPOLLIN;
  if (event_fd_ < 0 || epoll_ctl(event_fd_, EPOLL_CTL_ADD, ucx_fd, &entry) != 0 ||
      epoll_ctl(event_fd_, EPOLL_CTL_ADD, poller_.fd(), &entry) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "epoll: {}", strerror(errno));
  }
  return {};
}

Status Worker::set_handlers() {
  const struct {
    MessageId id;
    ucp_am_recv_callback_t callback;
  } handlers[] = {{kData, Handlers::data},   {kRequest, Handlers::request},
                  {kGrant, Handlers::grant}, {kChunk, Handlers::chunk},
                  {kFence, Handlers::fence}, {kFenced, Handlers::fenced},
                  {kBrief, Handlers::brief}};
  for (const auto& handler : handlers) {
    ucp_am_handler_param_t params{};
    params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                        UCP_AM_HANDLER_PARAM_FIELD_ARG;
    params.id = handler.id;
    params.cb = handler.callback;
    params.arg = this;
    const ucs_status_t status = ucp_worker_set_am_recv_handler(ucp_, &params);
    if (status != UCS_OK) {
      return failure(BITRAIL_ERR_SYSTEM, "UCX refuses an active message handler: {}",
                     ucs_status_string(status));
    }
  }
  return {};
}

Status Worker::endpoint(const std::vector<uint8_t>& address, bool local, const std::string& name,
                        Endpoint** endpoint) {
  for (const auto& known : endpoints_) {
    if (known->address != address || known->local != local || !known->failure.ok()) continue;
    *endpoint = known.get();
    return {};
  }
  std::unique_ptr<Endpoint> made;
  BITRAIL_TRY(create_endpoint(this, address, local, name, &made));
  if (!local) endpoint_made_ns_ = now_ns();
  *endpoint = made.get();
  endpoints_.push_back(std::move(made));
  return {};
}

void Worker::send_control(Endpoint* endpoint, MessageId id, const void* header, size_t bytes) {
  if (endpoint->ucp != nullptr && endpoint->failure.ok()) {
    send_header(endpoint->ucp, endpoint, id, header, bytes);
  }
}

void Worker::reply(ucp_ep_h ep, MessageId id, const void* header, size_t bytes) {
  send_header(ep, nullptr, id, header, bytes);
}

void Worker::send_header(ucp_ep_h ep, Endpoint* endpoint, MessageId id, const void* header,
                         size_t bytes) {
  SendOp* op = send_ops.take();
  op->worker = this;
  op->endpoint = endpoint;
  memcpy(&op->header, header, bytes);
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER |
                (id == kFence || id == kRequest ? unsigned{UCP_AM_SEND_FLAG_REPLY} : 0U);
  param.user_data = op;
  param.cb.send = [](void* request, ucs_status_t /*status*/, void* user) {
    auto* sent = static_cast<SendOp*>(user);
    if (sent->endpoint != nullptr) sent->endpoint->pending--;
    sent->worker->send_ops.give(sent);
    ucp_request_free(request);
  };
  const ucs_status_ptr_t request = ucp_am_send_nbx(ep, id, &op->header, bytes, nullptr, 0, &param);
  if (!UCS_PTR_IS_PTR(request)) {
    send_ops.give(op);
  } else if (endpoint != nullptr) {
    endpoint->pending++;
  }
}

void Worker::complete(const void* owner, Request* request) {
  if (holding_ > 0) return complete(owner, request, BITRAIL_OK, {});
  moved++;
  request->status = BITRAIL_OK;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
}

void Worker::complete(const void* owner, Request* request, bitrail_status_t status,
                      const std::string& text) {
  moved++;
  if (holding_ > 0) {
    held_.push_back({owner, request, status, text});
    return;
  }
  request->status = status;
  if (status != BITRAIL_OK) request->text = text;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
}

void Worker::deliver_held(const void* owner) {
  std::vector<Held> mine;
  for (size_t i = 0; i < held_.size();) {
    if (owner != nullptr && held_[i].owner != owner) {
      i++;
      continue;
    }
    mine.push_back(std::move(held_[i]));
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (Held& held : mine) {
    complete(held.owner, held.request, held.status, held.text);
  }
}

int Worker::progress() {
  int count = 0;
  if (!held_.empty()) {
    count += static_cast<int>(held_.size());
    deliver_held(nullptr);
  }
  if (ucp_ == nullptr) return count;
  if (!broken_.ok()) {
    if (!told_) end_all(broken_.code(), broken_.text());
    told_ = true;
    return count;
  }
  // Ends early when something happened for the caller, who may have an answer to send.
  constexpr int kMaxRounds = 16;
  const uint64_t before = moved;
  for (int i = 0; i < kMaxRounds && moved == before; i++) {
    const unsigned events = progress_ucx();
    if (events == 0) break;
    count += static_cast<int>(events);
  }
  if (!failed.empty()) close_failed();
  // Set-up is slow anyway; a system call in each round would not be.
  if (poller_.watched() > 0 && (ticks_++ & 255) == 0) count += service_side_channel();
  return count;
}

bool Worker::only_tcp(bool local) const {
  const auto has = [this](const char* name) { return transports_.find(name) != std::string::npos; };
  if (!has("tcp") || has("rc_") || has("dc_") || has("ud_")) return false;
  return !local || !(has("sysv") || has("posix") || has("xpmem") || has("knem") || has("cma"));
}

unsigned Worker::progress_ucx() {
  in_round_ = true;
  unsigned events = ucp_worker_progress(ucp_);
  in_round_ = false;
  if (streams_waiting > 0) events += static_cast<unsigned>(poller_.poll());
  while (queue_first_ != nullptr) {
    SendOp* op = queue_first_;
    dequeue(op);
    op->owner->resume(op);
  }
  return events;
}

bool Worker::must_wait(const Endpoint& endpoint) const {
  return queue_first_ != nullptr || (in_round_ && endpoint.pending > 0);
}

void Worker::enqueue(SendOp* op) {
  if (op->queued) return;
  op->queued = true;
  op->later = nullptr;
  (queue_last_ != nullptr ? queue_last_->later : queue_first_) = op;
  queue_last_ = op;
}

void Worker::dequeue(SendOp* op) {
  SendOp* before = nullptr;
  for (SendOp* item = queue_first_; item != nullptr; before = item, item = item->later) {
    if (item != op) continue;
    (before != nullptr ? before->later : queue_first_) = item->later;
    if (queue_last_ == item) queue_last_ = before;
    break;
  }
  op->queued = false;
}

int Worker::service_side_channel() {
  const int count = poller_.poll();
  for (UcxListener* listener : listeners) listener->service();
  return count;
}

Status Worker::arm(bool* idle) {
  *idle = false;
  if (ucp_ == nullptr) return failure(BITRAIL_ERR_BROKEN, "the context is closed");
  if (!broken_.ok()) return broken_;
  if (!held_.empty() || !failed.empty()) return {};
  if (poller_.watched() > 0 && service_side_channel() > 0) return {};
  const ucs_status_t status = ucp_worker_arm(ucp_);
  if (status == UCS_OK) {
    *idle = true;
  } else if (status != UCS_ERR_BUSY) {
    return failure(BITRAIL_ERR_SYSTEM, "UCX cannot wait for events: {}", ucs_status_string(status));
  }
  return {};
}

int64_t Worker::next_timer_ns() const {
  int64_t next = INT64_MAX;
  for (const UcxListener* listener : listeners) next = std::min(next, listener->next_timer_ns());
  return next;
}

void Worker::poison(const std::string& why) {
  if (!broken_.ok()) return;
  broken_ = failure(BITRAIL_ERR_BROKEN, "{}", why);
  log::info("{}", why);
}

// UCX wants a failed endpoint to be closed, and not from within its callback.
void Worker::close_failed() {
  for (Endpoint* endpoint : failed) {
    if (endpoint->ucp == nullptr) continue;
    log::info("{}", endpoint->failure.text());
    ucp_request_param_t param{};
    if (!endpoint->local) {
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint->ucp, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    endpoint->ucp = nullptr;
  }
  failed.clear();
}

void Worker::end_all(bitrail_status_t status, const std::string& text) {
  for (UcxSender* sender : senders) sender->end_all(status, text);
  for (UcxReceiver* receiver : receivers) receiver->end_all(status, text);
}

// Everything that was accepted reaches the peers that are alive. Between hosts that needs an
// answer from them: what UCX counts as sent may still be in the kernel, and closing a socket with
// unread bytes throws it away.
void Worker::flush_endpoints() {
  std::vector<std::pair<Endpoint*, ucs_status_ptr_t>> flushes;
  fences_sent_ = fences_answered_ = 0;
  for (const auto& endpoint : endpoints_) {
    if (!endpoint->failure.ok() || endpoint->ucp == nullptr) continue;
    if (!endpoint->local) {
      const FenceHeader fence{++fences_sent_};
      send_control(endpoint.get(), kFence, &fence, sizeof(fence));
    }
    const ucp_request_param_t param{};
    flushes.emplace_back(endpoint.get(), ucp_ep_flush_nbx(endpoint->ucp, &param));
  }
  drain([&] {
    const bool flushed = std::all_of(flushes.begin(), flushes.end(), [](const auto& flush) {
      return !UCS_PTR_IS_PTR(flush.second) ||
             ucp_request_check_status(flush.second) != UCS_INPROGRESS;
    });
    const auto lost =
        static_cast<uint64_t>(std::count_if(flushes.begin(), flushes.end(), [](const auto& flush) {
          return !flush.first->local && !flush.first->failure.ok();
        }));
    return flushed && fences_answered_ + lost >= fences_sent_;
  });
  for (const auto& flush : flushes) {
    if (UCS_PTR_IS_PTR(flush.second)) ucp_request_free(flush.second);
  }
  close_failed();
  for (const auto& endpoint : endpoints_) {
    if (endpoint->local || endpoint->ucp == nullptr) continue;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint->ucp, &param);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    endpoint->ucp = nullptr;
  }
}

// UCX sets endpoints up in the background, some of them by itself for what peers set up. One that
// still has to answer its peer must not be destroyed: UCX 1.13 ends the process (ucp_request.c).
void Worker::settle_endpoints() {
  const int64_t settled_ns = endpoint_made_ns_ + kSettleNs;
  while (endpoint_made_ns_ != 0 && now_ns() < settled_ns) {
    for (int i = 0; i < 64; i++) progress_ucx();
    sched_yield();
  }
}

void Worker::close() {
  if (ucp_ != nullptr) {
    holding_++;
    for (UcxReceiver* receiver : receivers) receiver->release_arrivals();
    drain([this] {
      return std::all_of(senders.begin(), senders.end(),
                         [](const UcxSender* sender) { return sender->outstanding() == 0; });
    });
    if (broken_.ok()) flush_endpoints();
    if (broken_.ok()) settle_endpoints();
    for (UcxReceiver* receiver : receivers) receiver->release_arrivals();
    end_all(BITRAIL_ERR_ABORTED, "the transport context was closed");
    ucp_worker_destroy(ucp_);
    ucp_ = nullptr;
    for (const auto& endpoint : endpoints_) endpoint->ucp = nullptr;
    holding_--;
    deliver_held(nullptr);
  }
  if (context_ != nullptr) ucp_cleanup(context_);
  context_ = nullptr;
}

}  // namespace bitrail::transport::ucx
