// The sending end of a connection.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "runtime/transport/ucx/endpoint.h"
#include "runtime/transport/ucx/operations.h"
#include "runtime/transport/ucx/stream.h"

namespace bitrail::transport::ucx {

class Worker;

class UcxSender : public Sender, private FrameSource {
 public:
  // `get`: long messages by UCX's rendezvous (the receiver reads this process's memory).
  UcxSender(std::shared_ptr<Worker> worker, Endpoint* endpoint, uint32_t connection, bool get);
  ~UcxSender() override;
  // Long messages go through this connected socket from now on; takes it over.
  void use_stream(int fd);

  Status isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie, Memory* memory,
               Request* request, bool* accepted) override;
  std::string peer_address() const override { return name_; }

  // A grant for one of this sender's long messages.
  void granted(SendOp* op, const GrantHeader& grant);
  // Called by the worker for what it had queued.
  void resume(SendOp* op);
  // UCX has sent (or given up) an operation.
  static void sent(SendOp* op, ucs_status_t status);
  // The connection is lost: ends what UCX does not know of; UCX ends the rest.
  void fail(const Status& status);
  // Ends every request with this status.
  void end_all(bitrail_status_t status, const std::string& text);
  size_t outstanding() const { return ops_.size; }

 private:
  ucs_status_ptr_t post(SendOp* op, MessageId id, const void* header, size_t header_bytes,
                        const void* data, size_t bytes, uint32_t flags);
  bool is_long(const SendOp* op) const { return op->size > eager_limit_ && !get_; }
  ucs_status_ptr_t post_brief(SendOp* op, size_t bytes);
  // Fills in what is needed of an operation that does not end at once.
  void keep(SendOp* op, const uint8_t* data, size_t bytes, Request* request);
  void launch(SendOp* op);
  void launched(SendOp* op, ucs_status_ptr_t sent);  // what UCX said
  void launch_long(SendOp* op);
  void streamed(SendOp* op) override;
  void stream_lost(const std::string& why) override;
  void pump(SendOp* op);
  // Takes the operation out of everything; returns whom to tell, null for nobody.
  Request* retire(SendOp* op);
  void finish(SendOp* op);  // well
  void finish(SendOp* op, bitrail_status_t status, const std::string& text);

  std::shared_ptr<Worker> worker_;
  Endpoint* endpoint_;
  uint32_t connection_;
  bool get_;
  size_t eager_limit_, chunk_bytes_;
  int chunk_window_;
  std::string name_;
  Chain<SendOp> ops_;  // accepted, not complete
  std::unique_ptr<OutStream> stream_;
};

}  // namespace bitrail::transport::ucx
