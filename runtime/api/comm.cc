// Communicators: joining, leaving, what they know of themselves.
#include "runtime/api/comm.h"

#include <cstring>

#include "runtime/api/counters.h"
#include "runtime/api/module.h"
#include "runtime/api/placement.h"
#include "runtime/api/result.h"
#include "runtime/api/transport_options.h"
#include "runtime/trace/log.h"

namespace bitrail::api {
namespace {

constexpr size_t kLeastOptions = offsetof(bitrail_comm_options_t, timeout_ms) + sizeof(int64_t);

Status check_options(const bitrail_comm_options_t* options) {
  if (options == nullptr) return {};
  if (options->struct_size < kLeastOptions)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_comm_options_t.struct_size is {}, at least {} expected",
                   options->struct_size, kLeastOptions);
  return {};
}

Status create(bitrail_comm* comm, const bitrail_comm_options_t* options) {
  BITRAIL_TRY(check_options(options));
  BITRAIL_TRY(config::load(&comm->settings));
  // What cannot work is said now, not in the first call.
  BITRAIL_TRY(load_modules(comm->settings.algo_path));
  BITRAIL_TRY(planner::check_algo(comm->settings.algo));
  BITRAIL_TRY(bootstrap::detect(options, comm->settings, &comm->world));
  log::set_rank(comm->world.rank);
  comm->timeout_ms = options != nullptr && options->timeout_ms > 0 ? options->timeout_ms
                                                                   : comm->settings.timeout_ms;
  const Deadline deadline = Deadline::in_ms(comm->timeout_ms);
  if (comm->world.size > 1)
    BITRAIL_TRY(
        bootstrap::Bootstrap::join(comm->world, comm->settings, deadline, &comm->bootstrap));
  transport::Options wanted = transport_options(comm->settings, comm->world.size);
  wanted.identity = {
      .secret = comm->bootstrap != nullptr ? comm->bootstrap->secret() : comm->world.secret,
      .job_id = comm->world.job_id,
      .rank = comm->world.rank};
  std::unique_ptr<transport::Context> context;
  BITRAIL_TRY(transport::open(comm->settings.transport, wanted, &context));
  return start(comm, std::move(context), deadline);
}

}  // namespace

Status start(bitrail_comm* comm, std::unique_ptr<transport::Context> context, Deadline deadline) {
  comm->transport = context->name();
  comm->engine =
      std::make_unique<engine::Engine>(std::move(context), comm->bootstrap.get(), comm->world.rank,
                                       comm->world.size, comm->timeout_ms);
  BITRAIL_TRY(comm->engine->start(deadline));
  BITRAIL_TRY(find_placement(comm, deadline));
  log::info("rank {} of {} by {}, transport {}", comm->world.rank, comm->world.size,
            comm->world.launcher, comm->transport);
  return {};
}

}  // namespace bitrail::api

using bitrail::Status;
using bitrail::api::guarded;

extern "C" {

bitrail_status_t bitrail_comm_create(bitrail_comm_t* comm, const bitrail_comm_options_t* options) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
    *comm = nullptr;
    auto made = std::make_unique<bitrail_comm>();
    Status status = bitrail::api::create(made.get(), options);
    if (!status.ok()) {
      // Whatever is wrong here may keep the others waiting: tell them if there is a way.
      if (made->bootstrap != nullptr)
        made->bootstrap->report({made->world.rank, status.code(),
                                 fmt::format("rank {}: {}", made->world.rank, status.text())});
      return status;
    }
    *comm = made.release();
    return {};
  });
}

bitrail_status_t bitrail_comm_destroy(bitrail_comm_t comm) {
  return guarded([&]() -> Status {
    if (comm != nullptr && comm->engine != nullptr) {
      comm->engine->stop();
      bitrail::api::write_counters(*comm);
    }
    delete comm;
    return {};
  });
}

bitrail_status_t bitrail_comm_abort(bitrail_comm_t comm, const char* reason) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
    comm->engine->abort(
        {comm->world.rank, BITRAIL_ERR_ABORTED,
         fmt::format("rank {} aborted{}{}", comm->world.rank, reason != nullptr ? ": " : "",
                     reason != nullptr ? reason : "")});
    return {};
  });
}

int bitrail_comm_rank(bitrail_comm_t comm) { return comm == nullptr ? -1 : comm->world.rank; }
int bitrail_comm_world_size(bitrail_comm_t comm) { return comm == nullptr ? -1 : comm->world.size; }
const char* bitrail_comm_transport(bitrail_comm_t comm) {
  return comm == nullptr ? "" : comm->transport.c_str();
}
const char* bitrail_comm_launcher(bitrail_comm_t comm) {
  return comm == nullptr ? "" : comm->world.launcher.c_str();
}

bitrail_status_t bitrail_comm_counters(bitrail_comm_t comm, bitrail_counters_t* counters) {
  return guarded([&]() -> Status {
    if (comm == nullptr || counters == nullptr || counters->struct_size < sizeof(*counters))
      return Status(BITRAIL_ERR_INVALID_ARGUMENT,
                    "comm or counters is NULL, or counters->struct_size is not set");
    const bitrail::engine::Totals& totals = comm->engine->totals();
    counters->calls = totals.calls.load();
    counters->raw_bytes = totals.raw_bytes.load();
    counters->wire_bytes_sent = totals.sent_bytes.load();
    counters->wire_bytes_received = totals.received_bytes.load();
    counters->messages_sent = totals.messages.load();
    counters->refused = totals.refused.load();
    counters->failures = totals.failures.load();
    counters->time_ns = totals.time_ns();
    return {};
  });
}

}  // extern "C"
