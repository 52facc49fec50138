// Messages between two ranks, past the schedules.
#include "runtime/api/call.h"
#include "runtime/api/result.h"

namespace bitrail::api {
namespace {

Status check(bitrail_comm* comm, const void* data, size_t bytes, int peer) {
  if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
  if (data == nullptr && bytes != 0)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "send/recv: data is NULL");
  if (peer < 0 || peer >= comm->world.size || peer == comm->world.rank)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "send/recv: peer {} is not another rank of 0..{}",
                   peer, comm->world.size - 1);
  return {};
}

Status transfer_message(bitrail_comm* comm, std::unique_ptr<engine::Transfer> transfer,
                        size_t* received, bitrail_request_t* request) {
  engine::Engine& engine = *comm->engine;
  BITRAIL_TRY(engine.launch(transfer.get()));
  auto made = std::make_unique<bitrail_request>();
  made->comm = comm;
  made->received = received;
  made->transfer = std::move(transfer);
  if (request != nullptr) {
    *request = made.release();
    return {};
  }
  Status status = engine.finish(made->transfer.get());
  if (status.ok() && received != nullptr) *received = made->transfer->request.received[0];
  return status;
}

}  // namespace
}  // namespace bitrail::api

extern "C" {

bitrail_status_t bitrail_send(bitrail_comm_t comm, const void* data, size_t bytes, int peer,
                              uint64_t tag, bitrail_request_t* request) {
  return bitrail::api::guarded([&]() -> bitrail::Status {
    BITRAIL_TRY(bitrail::api::check(comm, data, bytes, peer));
    auto transfer = std::make_unique<bitrail::engine::Transfer>();
    transfer->send = true;
    transfer->peer = peer;
    transfer->tag = tag;
    transfer->data = data;
    transfer->bytes = bytes;
    return bitrail::api::transfer_message(comm, std::move(transfer), nullptr, request);
  });
}

bitrail_status_t bitrail_recv(bitrail_comm_t comm, void* data, size_t bytes, int peer, uint64_t tag,
                              size_t* received, bitrail_request_t* request) {
  return bitrail::api::guarded([&]() -> bitrail::Status {
    BITRAIL_TRY(bitrail::api::check(comm, data, bytes, peer));
    auto transfer = std::make_unique<bitrail::engine::Transfer>();
    transfer->peer = peer;
    transfer->tag = tag;
    transfer->target = data;
    transfer->bytes = bytes;
    return bitrail::api::transfer_message(comm, std::move(transfer), received, request);
  });
}

}  // extern "C"
