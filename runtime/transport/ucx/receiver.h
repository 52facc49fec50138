// The receiving end of a connection: matches messages with receives by tag.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "runtime/transport/tables.h"
#include "runtime/transport/ucx/endpoint.h"
#include "runtime/transport/ucx/operations.h"
#include "runtime/transport/ucx/stream.h"

namespace bitrail::transport::ucx {

class Worker;

class UcxReceiver : public Receiver, private FrameSink {
 public:
  UcxReceiver(std::shared_ptr<Worker> worker, Endpoint* endpoint);
  ~UcxReceiver() override;
  // Long messages come through this connected socket; takes it over.
  Status use_stream(int fd);

  Status irecv(int count, const Buffer* buffers, Request* request, bool* accepted) override;
  Status flush(int count, const Buffer* buffers, Request* request) override;
  std::vector<Unexpected> unexpected() const override;
  std::string peer_address() const override { return name_; }

  uint32_t connection() const { return connection_; }
  // From the worker's handlers. The return value tells UCX whether `data` is still needed.
  ucs_status_t arrived(const DataHeader& header, void* data, size_t bytes, uint64_t attributes);
  void arrived_brief(const DataHeader& header, void* data, size_t bytes);
  void requested(const RequestHeader& header);
  void chunk(Slot* slot, const ChunkHeader& header, const void* data, size_t bytes);
  void fail(const Status& status);
  void end_all(bitrail_status_t status, const std::string& text);
  // Gives unwanted messages back to UCX and refuses those still at the sender.
  void release_arrivals();

 private:
  void keep(const DataHeader& header, void* data, size_t bytes, Arrival::Kind kind);
  void deliver(Slot* slot, Arrival* arrival);
  void copy_in(Slot* slot, uint32_t cookie, const void* data, size_t bytes);
  bool misfits(Slot* slot, uint32_t cookie, size_t bytes);
  void get(Slot* slot, uint32_t cookie, void* descriptor, size_t bytes);
  void grant(Slot* slot, uint32_t cookie, uint32_t send_id, size_t bytes);
  void answer(uint32_t send_id, Answer answer);
  void took(Slot* slot, size_t bytes);  // of a granted message
  void fill(Slot* slot, size_t bytes);
  void forget(Slot* slot);  // what its grant promised
  void release(Arrival* arrival);
  void finish(ReceiveOp* op);
  bool frame(const ChunkHeader& header) override;
  uint8_t* place(const ChunkHeader& header) override;
  void placed(const ChunkHeader& header, size_t bytes) override;
  void stream_ended() override;
  void stream_lost(bitrail_status_t status, const std::string& why) override;
  static void got(void* request, ucs_status_t status, size_t bytes, void* user);

  std::shared_ptr<Worker> worker_;
  Endpoint* endpoint_;
  uint32_t connection_;
  std::string name_;
  TagQueue<Slot> posted_;
  TagQueue<Arrival> arrivals_;
  Chain<ReceiveOp> ops_;
  uint64_t order_ = 0;
  size_t gets_ = 0;  // UCX is writing into so many buffers
  std::unique_ptr<InStream> stream_;
};

}  // namespace bitrail::transport::ucx
