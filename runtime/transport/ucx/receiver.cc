#include "runtime/transport/ucx/receiver.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/transport/ucx/worker.h"

namespace bitrail::transport::ucx {
namespace {

constexpr size_t kMaxReceives = 1024;  // receives of one connection

}  // namespace

UcxReceiver::UcxReceiver(std::shared_ptr<Worker> worker, Endpoint* endpoint)
    : worker_(std::move(worker)),
      endpoint_(endpoint),
      connection_(worker_->connections.insert(this)),
      name_(endpoint->name) {
  worker_->receivers.push_back(this);
  endpoint_->receivers.push_back(this);
}

UcxReceiver::~UcxReceiver() {
  worker_->connections.erase(connection_);
  if (!worker_->closed()) {
    release_arrivals();
    end_all(BITRAIL_ERR_ABORTED, "the connection from " + name_ + " was closed");
    // UCX copies these itself, within a few rounds, or not at all any more.
    if (gets_ > 0 && !worker_->drain([this] { return gets_ == 0; })) {
      worker_->poison("closed the connection from " + name_ +
                      " with a message half received: this transport context cannot be used any "
                      "further");
    }
  }
  for (ReceiveOp* op = ops_.first; op != nullptr; op = op->next) op->owner = nullptr;
  worker_->deliver_held(this);
  std::erase(worker_->receivers, this);
  std::erase(endpoint_->receivers, this);
}

Status UcxReceiver::use_stream(int fd) {
  stream_.reset(new InStream(worker_->poller(), fd, this));
  return stream_->open();
}

Status UcxReceiver::irecv(int count, const Buffer* buffers, Request* request, bool* accepted) {
  *accepted = false;
  if (count < 1 || count > kMaxGroupedReceives) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "irecv of {} buffers, allowed are 1 to {}", count,
                   kMaxGroupedReceives);
  }
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  if (!worker_->broken().ok()) return worker_->broken();
  if (ops_.size >= kMaxReceives) return {};
  // What arrived before the connection broke can still be received.
  if (!endpoint_->failure.ok() && arrivals_.size() == 0) return endpoint_->failure;

  ReceiveOp* op = worker_->receive_ops.take();
  op->owner = this;
  op->user = request;
  op->count = count;
  op->remaining = count + 1;
  op->misfit_size = op->misfit_capacity = 0;
  op->status = BITRAIL_OK;
  ops_.push(op);
  request->done = false;
  request->status = BITRAIL_OK;
  *accepted = true;
  for (int i = 0; i < count; i++) {
    Slot* slot = &op->slots[i];
    slot->tag = buffers[i].tag;
    slot->op = op;
    slot->data = static_cast<uint8_t*>(buffers[i].data);
    slot->capacity = buffers[i].bytes;
    slot->receive_id = slot->cookie = 0;
    slot->index = i;
    slot->getting = false;
    Arrival* arrival = arrivals_.size() > 0 ? arrivals_.pop(slot->tag) : nullptr;
    if (arrival != nullptr) {
      deliver(slot, arrival);
    } else {
      posted_.push(slot);
    }
  }
  if (--op->remaining == 0) {
    finish(op);
  } else if (!endpoint_->failure.ok()) {
    fail(endpoint_->failure);
  }
  return {};
}

// Host memory is visible as soon as the receive is complete.
Status UcxReceiver::flush(int /*count*/, const Buffer* /*buffers*/, Request* request) {
  request->status = BITRAIL_OK;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
  return {};
}

std::vector<Unexpected> UcxReceiver::unexpected() const {
  std::vector<std::pair<uint64_t, Unexpected>> found;
  arrivals_.each([&found](const Arrival& arrival) {
    found.push_back({arrival.order, {arrival.tag, arrival.cookie, arrival.bytes}});
  });
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Unexpected> messages;
  messages.reserve(found.size());
  for (const auto& entry : found) messages.push_back(entry.second);
  return messages;
}

ucs_status_t UcxReceiver::arrived(const DataHeader& header, void* data, size_t bytes,
                                  uint64_t attributes) {
  const bool rendezvous = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  Slot* slot = posted_.size() > 0 ? posted_.pop(header.tag) : nullptr;
  if (slot != nullptr) {
    if (misfits(slot, header.cookie, bytes)) return UCS_OK;
    if (!rendezvous) {
      copy_in(slot, header.cookie, data, bytes);
      return UCS_OK;
    }
    get(slot, header.cookie, data, bytes);
    return UCS_INPROGRESS;
  }
  if (rendezvous) {
    keep(header, data, bytes, Arrival::Kind::rendezvous);
    return UCS_INPROGRESS;
  }
  if (bytes <= sizeof(Arrival::small)) {
    keep(header, data, bytes, Arrival::Kind::copied);
    return UCS_OK;
  }
  if ((attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0) {
    keep(header, data, bytes, Arrival::Kind::eager);
    return UCS_INPROGRESS;
  }
  keep(header, data, bytes, Arrival::Kind::allocated);
  return UCS_OK;
}

void UcxReceiver::arrived_brief(const DataHeader& header, void* data, size_t bytes) {
  Slot* slot = posted_.size() > 0 ? posted_.pop(header.tag) : nullptr;
  if (slot == nullptr) {
    keep(header, data, bytes, Arrival::Kind::copied);
  } else if (!misfits(slot, header.cookie, bytes)) {
    copy_in(slot, header.cookie, data, bytes);
  }
}

void UcxReceiver::keep(const DataHeader& header, void* data, size_t bytes, Arrival::Kind kind) {
  Arrival* arrival = worker_->arrivals.take();
  arrival->tag = header.tag;
  arrival->cookie = header.cookie;
  arrival->bytes = bytes;
  arrival->order = order_++;
  arrival->kind = kind;
  arrival->data = data;
  if (kind == Arrival::Kind::copied) {
    if (bytes > 0) memcpy(arrival->small, data, bytes);
  } else if (kind == Arrival::Kind::allocated) {
    arrival->data = malloc(bytes);
    if (arrival->data != nullptr) memcpy(arrival->data, data, bytes);
  }
  arrivals_.push(arrival);
  worker_->moved++;
}

void UcxReceiver::requested(const RequestHeader& header) {
  Slot* slot = posted_.size() > 0 ? posted_.pop(header.tag) : nullptr;
  if (slot == nullptr) {
    Arrival* arrival = worker_->arrivals.take();
    arrival->tag = header.tag;
    arrival->cookie = header.cookie;
    arrival->bytes = header.bytes;
    arrival->order = order_++;
    arrival->kind = Arrival::Kind::request;
    arrival->send_id = header.send_id;
    arrivals_.push(arrival);
    worker_->moved++;
    return;
  }
  grant(slot, header.cookie, header.send_id, header.bytes);
}

void UcxReceiver::deliver(Slot* slot, Arrival* arrival) {
  switch (arrival->kind) {
    case Arrival::Kind::request:
      grant(slot, arrival->cookie, arrival->send_id, arrival->bytes);
      break;
    case Arrival::Kind::rendezvous:
      if (misfits(slot, arrival->cookie, arrival->bytes)) {
        ucp_am_data_release(worker_->ucp(), arrival->data);
      } else {
        get(slot, arrival->cookie, arrival->data, arrival->bytes);
      }
      break;
    default: {
      const void* data = arrival->kind == Arrival::Kind::copied ? arrival->small : arrival->data;
      if (data == nullptr) {
        slot->op->status = BITRAIL_ERR_NO_MEMORY;
        fill(slot, 0);
      } else if (!misfits(slot, arrival->cookie, arrival->bytes)) {
        copy_in(slot, arrival->cookie, data, arrival->bytes);
      }
      if (arrival->kind == Arrival::Kind::allocated) free(arrival->data);
      if (arrival->kind == Arrival::Kind::eager) {
        ucp_am_data_release(worker_->ucp(), arrival->data);
      }
    }
  }
  worker_->arrivals.give(arrival);
}

bool UcxReceiver::misfits(Slot* slot, uint32_t cookie, size_t bytes) {
  if (bytes <= slot->capacity) return false;
  if (slot->op->misfit_size == 0) {
    slot->op->misfit_size = bytes;
    slot->op->misfit_capacity = slot->capacity;
  }
  slot->cookie = cookie;
  fill(slot, 0);
  return true;
}

void UcxReceiver::copy_in(Slot* slot, uint32_t cookie, const void* data, size_t bytes) {
  if (bytes > 0) memcpy(slot->data, data, bytes);
  slot->cookie = cookie;
  fill(slot, bytes);
}

void UcxReceiver::get(Slot* slot, uint32_t cookie, void* descriptor, size_t bytes) {
  slot->cookie = cookie;
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.cb.recv_am = got;
  param.user_data = slot;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_->ucp(), descriptor, slot->data, bytes, &param);
  if (request == nullptr) {
    fill(slot, bytes);
  } else if (UCS_PTR_IS_ERR(request)) {
    slot->op->status = BITRAIL_ERR_PEER_LOST;
    fill(slot, 0);
  } else {
    slot->getting = true;
    gets_++;
  }
}

void UcxReceiver::got(void* request, ucs_status_t status, size_t bytes, void* user) {
  auto* slot = static_cast<Slot*>(user);
  ucp_request_free(request);
  UcxReceiver* self = slot->op->owner;
  if (self == nullptr) return;  // the receiver is gone and the worker will not be used again
  self->gets_--;
  if (status != UCS_OK) slot->op->status = BITRAIL_ERR_PEER_LOST;
  self->fill(slot, status == UCS_OK ? bytes : 0);
}

void UcxReceiver::grant(Slot* slot, uint32_t cookie, uint32_t send_id, size_t bytes) {
  if (misfits(slot, cookie, bytes)) return answer(send_id, kDropped);
  slot->cookie = cookie;
  slot->expected = bytes;
  slot->got = 0;
  slot->receive_id = worker_->chunked.insert(slot);
  if (stream_ != nullptr && slot->receive_id != 0) worker_->streams_waiting++;
  const GrantHeader header{send_id, slot->receive_id, kAccepted, 0};
  worker_->send_control(endpoint_, kGrant, &header, sizeof(header));
}

void UcxReceiver::answer(uint32_t send_id, Answer answer) {
  const GrantHeader header{send_id, 0, answer, 0};
  worker_->send_control(endpoint_, kGrant, &header, sizeof(header));
}

void UcxReceiver::chunk(Slot* slot, const ChunkHeader& header, const void* data, size_t bytes) {
  if (!chunk_fits(header, bytes, slot->expected, slot->got)) return;
  memcpy(slot->data + header.offset, data, bytes);
  took(slot, bytes);
}

void UcxReceiver::took(Slot* slot, size_t bytes) {
  slot->got += bytes;
  worker_->moved++;
  if (slot->got == slot->expected) fill(slot, slot->got);
}

bool UcxReceiver::frame(const ChunkHeader& header) {
  const Slot* slot = worker_->chunked.find(header.receive_id);
  if (slot == nullptr) return true;  // given up meanwhile
  return slot->op->owner == this && chunk_fits(header, header.bytes, slot->expected, slot->got);
}

uint8_t* UcxReceiver::place(const ChunkHeader& header) {
  Slot* slot = worker_->chunked.find(header.receive_id);
  return slot != nullptr ? slot->data + header.offset : nullptr;
}

void UcxReceiver::placed(const ChunkHeader& header, size_t bytes) {
  took(worker_->chunked.find(header.receive_id), bytes);
}

// In order when the sender is closed, unless it was asked for something.
void UcxReceiver::stream_ended() {
  for (const ReceiveOp* op = ops_.first; op != nullptr; op = op->next) {
    for (int i = 0; i < op->count; i++) {
      if (op->slots[i].receive_id == 0) continue;
      return stream_lost(BITRAIL_ERR_PEER_LOST, "it was closed before a message");
    }
  }
}

void UcxReceiver::stream_lost(bitrail_status_t status, const std::string& why) {
  lose_endpoint(endpoint_, failure(status, "connection to {} is lost: {}", name_, why));
}

void UcxReceiver::forget(Slot* slot) {
  if (slot->receive_id == 0) return;
  worker_->chunked.erase(slot->receive_id);
  slot->receive_id = 0;
  if (stream_ != nullptr) worker_->streams_waiting--;
}

void UcxReceiver::fill(Slot* slot, size_t bytes) {
  forget(slot);
  slot->getting = false;
  ReceiveOp* op = slot->op;
  if (op->user != nullptr) {
    op->user->received[slot->index] = bytes;
    op->user->cookie = op->slots[op->count - 1].cookie;
  }
  if (--op->remaining == 0) finish(op);
}

void UcxReceiver::finish(ReceiveOp* op) {
  Request* user = op->user;
  const bitrail_status_t status = op->status;
  const size_t size = op->misfit_size, capacity = op->misfit_capacity;
  ops_.remove(op);
  worker_->receive_ops.give(op);
  worker_->moved++;
  if (user == nullptr) return;
  if (status != BITRAIL_OK) {
    worker_->complete(this, user, status, "receive from " + name_ + ": the message is lost");
  } else if (size > 0) {
    worker_->complete(this, user, BITRAIL_ERR_MISMATCH,
                      fmt::format("receive from {}: a message of {} bytes for a buffer of {} bytes",
                                  name_, size, capacity));
  } else {
    worker_->complete(this, user);
  }
}

void UcxReceiver::fail(const Status& status) { end_all(status.code(), status.text()); }

void UcxReceiver::end_all(bitrail_status_t status, const std::string& text) {
  while (posted_.pop_any() != nullptr) {
  }
  for (ReceiveOp* op = ops_.first; op != nullptr;) {
    ReceiveOp* next = op->next;
    Request* user = op->user;
    op->user = nullptr;
    int left = 0;  // slots that UCX writes to
    for (int i = 0; i < op->count; i++) {
      Slot* slot = &op->slots[i];
      forget(slot);
      if (slot->getting) left++;
    }
    op->remaining = left;
    if (left == 0) {
      ops_.remove(op);
      worker_->receive_ops.give(op);
    }
    if (user != nullptr) worker_->complete(this, user, status, text);
    op = next;
  }
}

void UcxReceiver::release_arrivals() {
  while (Arrival* arrival = arrivals_.pop_any()) {
    if (arrival->kind == Arrival::Kind::request) answer(arrival->send_id, kGone);
    if (arrival->kind == Arrival::Kind::allocated) free(arrival->data);
    if (arrival->kind == Arrival::Kind::eager || arrival->kind == Arrival::Kind::rendezvous) {
      ucp_am_data_release(worker_->ucp(), arrival->data);
    }
    worker_->arrivals.give(arrival);
  }
}

}  // namespace bitrail::transport::ucx
