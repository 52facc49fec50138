// Point to point: past the schedules, on connections of its own, so that the 64-bit tag is the
// user's.
#include <algorithm>

#include "runtime/engine/engine.h"

namespace bitrail::engine {

int Engine::advance(Transfer* transfer) {
  if (!transfer->posted) {
    int events = 0;
    if (transfer->send ? !point_mesh_.can_send(transfer->peer)
                       : !point_mesh_.can_recv(transfer->peer))
      return 0;
    bool accepted = false;
    Status status;
    if (transfer->send) {
      status = point_mesh_.sender(transfer->peer)
                   ->isend(transfer->data, transfer->bytes, transfer->tag, 0, nullptr,
                           &transfer->request, &accepted);
    } else {
      const transport::Buffer buffer{transfer->target, transfer->bytes, transfer->tag, nullptr};
      status =
          point_mesh_.receiver(transfer->peer)->irecv(1, &buffer, &transfer->request, &accepted);
    }
    if (!status.ok()) {
      fail({transfer->peer, status.code(),
            fmt::format("rank {}, message {} {} rank {}: {}", rank_, transfer->tag,
                        transfer->send ? "to" : "from", transfer->peer, status.text())},
           /*tell=*/true);
      return 1;
    }
    if (!accepted) return events;
    transfer->posted = true;
    transfer->progressed = true;
    if (transfer->send) {
      totals_.sent_bytes.add(transfer->bytes);
      totals_.messages.add(1);
    }
  }
  if (!transfer->request.done) return 0;
  if (transfer->request.status == BITRAIL_OK) {
    if (!transfer->send) totals_.received_bytes.add(transfer->request.received[0]);
    end_transfer(transfer, {});
  } else if (transfer->request.status == BITRAIL_ERR_MISMATCH) {
    // A message too long for its receive concerns these two ranks only.
    end_transfer(transfer, failure(BITRAIL_ERR_MISMATCH, "rank {}, message {} from rank {}: {}",
                                   rank_, transfer->tag, transfer->peer, transfer->request.text));
  } else {
    fail({transfer->peer, transfer->request.status,
          fmt::format("rank {}, message {} {} rank {}: {}", rank_, transfer->tag,
                      transfer->send ? "to" : "from", transfer->peer, transfer->request.text)},
         /*tell=*/true);
  }
  return 1;
}

void Engine::end_transfer(Transfer* transfer, Status status) {
  transfers_.erase(std::remove(transfers_.begin(), transfers_.end(), transfer), transfers_.end());
  if (!status.ok()) totals_.failures.add(1);
  transfer->status = std::move(status);
  transfer->done.store(true, std::memory_order_release);
}

Status Engine::start_transfer(Transfer* transfer) {
  BITRAIL_TRY(failure_status());
  transfer->progressed = true;
  if (transfer->send) point_mesh_.want(transfer->peer, Deadline::in_ms(timeout_ms_));
  transfers_.push_back(transfer);
  advance(transfer);
  return {};
}

}  // namespace bitrail::engine
