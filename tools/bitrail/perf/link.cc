#include "tools/bitrail/perf/link.h"

#include <sched.h>

#include "runtime/api/transport_options.h"

namespace bitrail::tool {
namespace {

// Looks without a result before the processor is given to others, who may be the peer.
constexpr int kEmptyLooks = 500;
constexpr uint64_t kSwapTag = ~uint64_t{0};

}  // namespace

Status Link::open(const std::string& transport, std::unique_ptr<Link>* link) {
  std::unique_ptr<Link> made(new Link);
  config::Settings& settings = made->settings_;
  BITRAIL_TRY(config::load(&settings));
  BITRAIL_TRY(bootstrap::detect(nullptr, settings, &made->world_));
  const bootstrap::World& world = made->world_;
  if (world.size != 2) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "needs 2 ranks, there are {}: bitrail launch -n 2 -- bitrail perf ...",
                   world.size);
  }
  const Deadline deadline = Deadline::in_ms(settings.timeout_ms);
  BITRAIL_TRY(bootstrap::Bootstrap::join(world, settings, deadline, &made->bootstrap_));
  transport::Options options = api::transport_options(settings, world.size);
  options.identity = {
      .secret = made->bootstrap_->secret(), .job_id = world.job_id, .rank = world.rank};
  Status status =
      transport::open(transport.empty() ? settings.transport : transport, options, &made->context_);
  if (status.ok()) {
    made->name_ = made->context_->name();
    status = made->connect(deadline);
  }
  if (!status.ok()) {
    made->bootstrap_->report({world.rank, status.code(), status.text()});
    return status;
  }
  *link = std::move(made);
  return {};
}

Status Link::connect(Deadline deadline) {
  transport::Handle own, all[2];
  BITRAIL_TRY(context_->listen(0, &own, &listener_));
  BITRAIL_TRY(bootstrap_->allgather(&own, sizeof own, all, deadline));
  const int peer = 1 - world_.rank;
  std::unique_ptr<transport::Context::Connecting> pending;
  int64_t since_ns = now_ns();
  int empty_looks = 0;
  while (sender_ == nullptr || receiver_ == nullptr) {
    if (sender_ == nullptr)
      BITRAIL_TRY(context_->connect(0, all[peer], {peer}, deadline, &pending, &sender_));
    transport::Peer who;
    if (receiver_ == nullptr) BITRAIL_TRY(listener_->accept(&receiver_, &who));
    BITRAIL_TRY(look(&since_ns, &empty_looks));
  }
  // The peer may still need this side's help to finish.
  uint8_t mine = 1, theirs = 0;
  return swap(&mine, &theirs, 1);
}

Status Link::look(int64_t* since_ns, int* empty_looks) {
  if (context_->progress() > 0) {
    *empty_looks = 0;
    *since_ns = 0;  // read the clock when it is quiet again
    return {};
  }
  if (++*empty_looks < kEmptyLooks) return {};
  *empty_looks = 0;
  if (bootstrap_->failed()) {
    const bootstrap::Failure lost = bootstrap_->failure();
    return Status(lost.code, lost.text);
  }
  const int64_t now = now_ns();
  if (*since_ns == 0) *since_ns = now;
  if (now - *since_ns > settings_.timeout_ms * 1'000'000) {
    return failure(BITRAIL_ERR_TIMEOUT,
                   "rank {}: nothing came from rank {} ({}) for {} ms (BITRAIL_TIMEOUT_MS)",
                   world_.rank, 1 - world_.rank,
                   sender_ != nullptr ? sender_->peer_address() : "not connected",
                   settings_.timeout_ms);
  }
  sched_yield();
  return {};
}

Status Link::send(const void* data, size_t bytes, uint64_t tag, transport::Memory* memory,
                  transport::Request* request) {
  int64_t since_ns = 0;
  int empty_looks = 0;
  for (;;) {
    bool accepted = false;
    BITRAIL_TRY(sender_->isend(data, bytes, tag, 0, memory, request, &accepted));
    if (accepted) return {};
    BITRAIL_TRY(look(&since_ns, &empty_looks));
  }
}

Status Link::receive(void* data, size_t bytes, uint64_t tag, transport::Memory* memory,
                     transport::Request* request) {
  const transport::Buffer buffer = {data, bytes, tag, memory};
  int64_t since_ns = 0;
  int empty_looks = 0;
  for (;;) {
    bool accepted = false;
    BITRAIL_TRY(receiver_->irecv(1, &buffer, request, &accepted));
    if (accepted) return {};
    BITRAIL_TRY(look(&since_ns, &empty_looks));
  }
}

Status Link::wait(transport::Request* request) {
  int64_t since_ns = 0;
  int empty_looks = 0;
  while (!request->done) BITRAIL_TRY(look(&since_ns, &empty_looks));
  if (request->status == BITRAIL_OK) return {};
  return Status(request->status, request->text);
}

Status Link::swap(const void* mine, void* theirs, size_t bytes) {
  transport::Request sending, receiving;
  Status status = receive(theirs, bytes, kSwapTag, nullptr, &receiving);
  if (status.ok()) status = send(mine, bytes, kSwapTag, nullptr, &sending);
  if (status.ok()) status = wait(&receiving);
  if (status.ok()) status = wait(&sending);
  if (!status.ok()) {
    end();  // the requests are on this stack
    return status;
  }
  return {};
}

void Link::end() {
  receiver_.reset();
  sender_.reset();
  listener_.reset();
  context_.reset();
}

Status Link::leave() {
  uint8_t mine = 0, theirs[2];
  return bootstrap_->allgather(&mine, 1, theirs, Deadline::in_ms(settings_.timeout_ms));
}

}  // namespace bitrail::tool
