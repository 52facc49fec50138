#include "runtime/engine/mesh.h"

#include "runtime/trace/log.h"

namespace bitrail::engine {

Mesh::Mesh(transport::Context* context, int rank, int world_size)
    : context_(context), rank_(rank), links_(static_cast<size_t>(world_size)) {}

Status Mesh::listen(transport::Handle* own) { return context_->listen(0, own, &listener_); }

void Mesh::want(int peer, Deadline deadline) {
  Link& link = links_[static_cast<size_t>(peer)];
  if (link.wanted || link.sender != nullptr) return;
  link.wanted = true;
  link.deadline = deadline;
  wanted_++;
}

Status Mesh::accept(int* events) {
  while (listener_ != nullptr) {
    std::unique_ptr<transport::Receiver> receiver;
    transport::Peer peer;
    BITRAIL_TRY(listener_->accept(&receiver, &peer));
    if (receiver == nullptr) return {};
    if (peer.rank < 0 || peer.rank >= static_cast<int>(links_.size()) || peer.rank == rank_) {
      log::warn("a connection from {} claims rank {}, which this job does not have: dropped",
                receiver->peer_address(), peer.rank);
      continue;
    }
    Link& link = links_[static_cast<size_t>(peer.rank)];
    if (link.receiver != nullptr) {
      log::warn("a second connection from rank {} ({}): dropped", peer.rank,
                receiver->peer_address());
      continue;
    }
    link.receiver = std::move(receiver);
    ++*events;
  }
  return {};
}

Status Mesh::poll(int* events) {
  BITRAIL_TRY(accept(events));
  if (wanted_ == 0) return {};
  for (size_t peer = 0; peer < links_.size(); peer++) {
    Link& link = links_[peer];
    if (!link.wanted) continue;
    const Status status =
        context_->connect(0, handles_[peer], transport::Peer{static_cast<int>(peer)}, link.deadline,
                          &link.pending, &link.sender);
    if (!status.ok())
      return failure(status.code(), "rank {} connecting to rank {}: {}", rank_, peer,
                     status.text());
    if (link.sender == nullptr) continue;
    link.pending.reset();
    link.wanted = false;
    wanted_--;
    ++*events;
  }
  return {};
}

void Mesh::close() {
  listener_.reset();
  for (Link& link : links_) link = Link();
  wanted_ = 0;
}

}  // namespace bitrail::engine
