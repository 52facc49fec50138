// Two ranks joined by the transport alone, without the engine: what `bitrail perf bw` and `lat`
// measure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/transport/transport.h"

namespace bitrail::tool {

class Link {
 public:
  // Joins the job (BITRAIL_* say how) and connects both ways. `transport` empty: BITRAIL_TRANSPORT.
  // Fails unless there are exactly two ranks.
  static Status open(const std::string& transport, std::unique_ptr<Link>* link);
  // Both ranks call it after their last message: nobody leaves while the other still needs answers.
  Status leave();
  // After a failure: pending requests end, nothing is written any more. The rest of the link is of
  // no use then.
  void end();

  int rank() const { return world_.rank; }
  const std::string& transport() const { return name_; }
  std::string peer_address() const { return sender_->peer_address(); }
  Status register_memory(void* data, size_t bytes, std::unique_ptr<transport::Memory>* memory) {
    return context_->register_memory(data, bytes, transport::kHost, memory);
  }

  // Insist until the transport takes them; the requests must stay where they are until done.
  Status send(const void* data, size_t bytes, uint64_t tag, transport::Memory* memory,
              transport::Request* request);
  Status receive(void* data, size_t bytes, uint64_t tag, transport::Memory* memory,
                 transport::Request* request);
  // Until it is done; fails with its error, when the peer is lost, and after BITRAIL_TIMEOUT_MS
  // without any progress.
  Status wait(transport::Request* request);
  // Small messages both ways; `mine` and `theirs` have the same size on both sides.
  Status swap(const void* mine, void* theirs, size_t bytes);

 private:
  Link() = default;
  Status connect(Deadline deadline);
  // One look at the network; *since_ns is when something last happened.
  Status look(int64_t* since_ns, int* empty_looks);

  config::Settings settings_;
  bootstrap::World world_;
  std::string name_;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;
  std::unique_ptr<transport::Context> context_;
  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::Receiver> receiver_;
  std::unique_ptr<transport::Sender> sender_;
};

}  // namespace bitrail::tool
