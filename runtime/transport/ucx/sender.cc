#include "runtime/transport/ucx/sender.h"

#include <sys/socket.h>

#include <algorithm>

#include "runtime/transport/ucx/worker.h"

namespace bitrail::transport::ucx {
namespace {

// Requests of one connection in flight; beyond, isend says "not now". Bounds the memory that a
// caller who never looks at completions can take.
constexpr size_t kMaxSends = 1024;

// Inside a host a message is copied twice up to here and once, but with a system call, above
// (bytes, CMA). Without CMA and between hosts the receiver's consent is what counts above: it
// limits what can pile up there.
constexpr size_t kEagerBytesGet = 16 << 10;
constexpr size_t kEagerBytesChunked = 64 << 10;
// A chunk fits one of UCX's fragments, so that the receiver copies it straight out of the
// transport's buffer: shared memory 8 KiB, TCP 64 KiB less headers.
constexpr size_t kChunkBytesLocal = 8 << 10;
constexpr size_t kChunkBytesRemote = 60 << 10;
constexpr int kStreamBytesLocal = 128 << 10;  // the kernel doubles it
constexpr int kChunkWindowLocal = 16, kChunkWindowRemote = 4;

void on_sent(void* request, ucs_status_t status, void* user) {
  ucp_request_free(request);
  UcxSender::sent(static_cast<SendOp*>(user), status);
}

}  // namespace

UcxSender::UcxSender(std::shared_ptr<Worker> worker, Endpoint* endpoint, uint32_t connection,
                     bool get)
    : worker_(std::move(worker)),
      endpoint_(endpoint),
      connection_(connection),
      get_(get),
      eager_limit_(get ? kEagerBytesGet : kEagerBytesChunked),
      chunk_bytes_(endpoint->local ? kChunkBytesLocal : kChunkBytesRemote),
      chunk_window_(endpoint->local ? kChunkWindowLocal : kChunkWindowRemote),
      name_(endpoint->name) {
  worker_->senders.push_back(this);
  endpoint_->senders.push_back(this);
}

UcxSender::~UcxSender() {
  if (!worker_->closed()) {
    // The buffers go back to the caller, so UCX must be done with them.
    worker_->drain([this] { return ops_.size == 0; });
    const bool in_ucx = [this] {
      for (const SendOp* op = ops_.first; op != nullptr; op = op->next) {
        if (op->in_ucx || op->chunks > 0) return true;
      }
      return false;
    }();
    end_all(BITRAIL_ERR_ABORTED, "the connection to " + name_ + " was closed");
    if (in_ucx) {
      worker_->poison("closed the connection to " + name_ +
                      ", which takes no data any more, with messages on the way: this transport "
                      "context cannot be used any further");
    }
  }
  for (SendOp* op = ops_.first; op != nullptr; op = op->next) op->owner = nullptr;
  worker_->deliver_held(this);
  std::erase(worker_->senders, this);
  std::erase(endpoint_->senders, this);
}

void UcxSender::use_stream(int fd) {
  // Within a host nothing has to be in flight, and what is in flight should still lie in the caches
  // when it is read. Between hosts the kernel finds out how much the way holds.
  if (endpoint_->local) {
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kStreamBytesLocal, sizeof(kStreamBytesLocal));
  }
  stream_.reset(new OutStream(worker_->poller(), fd, &worker_->streams_waiting, this));
}

ucs_status_ptr_t UcxSender::post(SendOp* op, MessageId id, const void* header, size_t header_bytes,
                                 const void* data, size_t bytes, uint32_t flags) {
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.flags = flags;
  param.cb.send = on_sent;
  param.user_data = op;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  return ucp_am_send_nbx(endpoint_->ucp, id, header, header_bytes, data, bytes, &param);
}

Status UcxSender::isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie,
                        Memory* /*memory*/, Request* request, bool* accepted) {
  *accepted = false;
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  if (!worker_->broken().ok()) return worker_->broken();
  if (!endpoint_->failure.ok()) return endpoint_->failure;
  if (ops_.size >= kMaxSends) return {};

  SendOp* op = worker_->send_ops.take();
  op->header.data = {connection_, cookie, tag};
  request->done = false;
  request->status = BITRAIL_OK;
  *accepted = true;
  const bool brief = bytes <= kBriefBytes;
  if (brief && bytes > 0) memcpy(op->header.brief.bytes, data, bytes);
  const auto* kept = brief ? nullptr : static_cast<const uint8_t*>(data);
  if (worker_->must_wait(*endpoint_)) {
    keep(op, kept, bytes, request);
    worker_->enqueue(op);
  } else if (!brief) {
    keep(op, kept, bytes, request);
    launch(op);
  } else if (const ucs_status_ptr_t sent = post_brief(op, bytes); sent != nullptr) {
    keep(op, kept, bytes, request);
    launched(op, sent);
  } else {  // as nearly always: it is sent, nothing to keep
    worker_->send_ops.give(op);
    worker_->complete(this, request);
  }
  return {};
}

void UcxSender::keep(SendOp* op, const uint8_t* data, size_t bytes, Request* request) {
  op->worker = worker_.get();
  op->owner = this;
  op->user = request;
  op->parent = nullptr;
  op->endpoint = endpoint_;
  op->queued = op->streaming = op->launched = op->in_ucx = false;
  op->bytes = data;
  op->size = bytes;
  op->send_id = 0;
  op->chunks = 0;
  ops_.push(op);
}

void UcxSender::resume(SendOp* op) {
  if (op->launched) {
    pump(op);
  } else if (endpoint_->failure.ok()) {
    launch(op);
  } else {
    finish(op, endpoint_->failure.code(), endpoint_->failure.text());
  }
}

ucs_status_ptr_t UcxSender::post_brief(SendOp* op, size_t bytes) {
  return post(op, kBrief, nullptr, 0, &op->header.brief, sizeof(DataHeader) + bytes,
              UCP_AM_SEND_FLAG_EAGER);
}

void UcxSender::launch(SendOp* op) {
  if (is_long(op)) return launch_long(op);
  op->in_ucx = true;  // UCX may tell of the endpoint's failure from within: fail() leaves it to us
  if (op->size <= kBriefBytes) return launched(op, post_brief(op, op->size));
  const uint32_t flags = op->size > eager_limit_ ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  launched(op,
           post(op, kData, &op->header.data, sizeof(op->header.data), op->bytes, op->size, flags));
}

void UcxSender::launched(SendOp* op, ucs_status_ptr_t sent) {
  op->launched = true;
  op->in_ucx = UCS_PTR_IS_PTR(sent);
  if (op->in_ucx) {
    endpoint_->pending++;
  } else if (sent == nullptr) {
    finish(op);
  } else {
    finish(op, BITRAIL_ERR_PEER_LOST,
           fmt::format("send to {}: {}", name_, ucs_status_string(UCS_PTR_STATUS(sent))));
  }
}

void UcxSender::launch_long(SendOp* op) {
  op->launched = true;
  op->offset = 0;
  op->receive_id = 0;
  op->send_id = worker_->long_sends.insert(op);
  const DataHeader& data = op->header.data;
  const RequestHeader header{data.connection, data.cookie, data.tag, op->size, op->send_id, 0};
  worker_->send_control(endpoint_, kRequest, &header, sizeof(header));
}

void UcxSender::granted(SendOp* op, const GrantHeader& grant) {
  if (op->receive_id != 0) return;  // a second grant: not from an honest peer
  if (grant.answer == kDropped) return finish(op);
  if (grant.answer != kAccepted || grant.receive_id == 0) {
    finish(op, BITRAIL_ERR_PEER_LOST, name_ + " has closed the connection");
    return;
  }
  op->receive_id = grant.receive_id;
  if (stream_ != nullptr) {
    op->streaming = true;
    stream_->push(op);
    return;
  }
  if (worker_->must_wait(*endpoint_)) {
    worker_->enqueue(op);
  } else {
    pump(op);
  }
}

void UcxSender::streamed(SendOp* op) {
  op->streaming = false;
  finish(op);
}

void UcxSender::stream_lost(const std::string& why) {
  lose_endpoint(endpoint_,
                failure(BITRAIL_ERR_PEER_LOST, "connection to {} is lost: {}", name_, why));
}

void UcxSender::pump(SendOp* op) {
  while (op->chunks < chunk_window_ && op->offset < op->size && endpoint_->failure.ok()) {
    SendOp* chunk = worker_->send_ops.take();
    chunk->worker = worker_.get();
    chunk->owner = this;
    chunk->user = nullptr;
    chunk->parent = op;
    chunk->endpoint = endpoint_;
    chunk->header.chunk = {op->receive_id, 0, op->offset};
    const size_t bytes = std::min(chunk_bytes_, op->size - op->offset);
    op->chunks++;  // as in launch(): fail() may be called before this returns
    const ucs_status_ptr_t sent =
        post(chunk, kChunk, &chunk->header.chunk, sizeof(chunk->header.chunk),
             op->bytes + op->offset, bytes, UCP_AM_SEND_FLAG_EAGER);
    op->offset += bytes;
    if (UCS_PTR_IS_PTR(sent)) {
      endpoint_->pending++;
      continue;
    }
    op->chunks--;
    worker_->send_ops.give(chunk);
    if (UCS_PTR_IS_ERR(sent)) {
      op->offset = op->size;  // no more of it
      op->receive_id = 0;
      if (op->user != nullptr) {
        worker_->complete(
            this, op->user, BITRAIL_ERR_PEER_LOST,
            fmt::format("send to {}: {}", name_, ucs_status_string(UCS_PTR_STATUS(sent))));
        op->user = nullptr;
      }
    }
  }
  worker_->moved++;
  if (!endpoint_->failure.ok()) op->offset = op->size;
  if (op->offset == op->size && op->chunks == 0) {
    finish(op, endpoint_->failure.code(), endpoint_->failure.text());
  }
}

void UcxSender::sent(SendOp* op, ucs_status_t status) {
  UcxSender* self = op->owner;
  SendOp* parent = op->parent;
  op->endpoint->pending--;
  if (parent == nullptr) {
    op->in_ucx = false;
    if (self == nullptr) return;  // its owner is gone and the worker will not be used again
    if (status == UCS_OK) return self->finish(op);
    // What went wrong with the connection is known better than by UCX's code for this message.
    const Status& known = self->endpoint_->failure;
    return self->finish(op, known.ok() ? BITRAIL_ERR_PEER_LOST : known.code(),
                        known.ok()
                            ? fmt::format("send to {}: {}", self->name_, ucs_status_string(status))
                            : known.text());
  }
  Worker* worker = op->worker;
  worker->send_ops.give(op);
  parent->chunks--;
  if (parent->owner == nullptr) return;
  if (status != UCS_OK) {
    parent->offset = parent->size;
    if (parent->user != nullptr) {
      parent->owner->worker_->complete(
          parent->owner, parent->user, BITRAIL_ERR_PEER_LOST,
          fmt::format("send to {}: {}", parent->owner->name_, ucs_status_string(status)));
      parent->user = nullptr;
    }
  }
  worker->enqueue(parent);  // UCX calls from within a round
}

Request* UcxSender::retire(SendOp* op) {
  if (op->send_id != 0) worker_->long_sends.erase(op->send_id);
  if (op->queued) worker_->dequeue(op);
  if (op->streaming) stream_->remove(op);
  Request* user = op->user;
  ops_.remove(op);
  worker_->send_ops.give(op);
  worker_->moved++;
  return user;
}

void UcxSender::finish(SendOp* op) {
  Request* user = retire(op);
  if (user != nullptr) worker_->complete(this, user);
}

void UcxSender::finish(SendOp* op, bitrail_status_t status, const std::string& text) {
  Request* user = retire(op);
  if (user != nullptr) worker_->complete(this, user, status, text);
}

void UcxSender::fail(const Status& status) {
  for (SendOp* op = ops_.first; op != nullptr;) {
    SendOp* next = op->next;
    if (!op->in_ucx && op->chunks == 0) {
      finish(op, status.code(), status.text());
    } else {
      op->offset = op->size;  // no further chunks; UCX ends those it has
    }
    op = next;
  }
}

void UcxSender::end_all(bitrail_status_t status, const std::string& text) {
  for (SendOp* op = ops_.first; op != nullptr;) {
    SendOp* next = op->next;
    if (!op->in_ucx && op->chunks == 0) {
      finish(op, status, text);
    } else if (op->user != nullptr) {
      worker_->complete(this, op->user, status, text);
      op->user = nullptr;
    }
    op = next;
  }
}

}  // namespace bitrail::transport::ucx
