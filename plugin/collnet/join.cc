#include "plugin/collnet/join.h"

#include <netinet/in.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "runtime/api/comm.h"
#include "runtime/api/transport_options.h"

namespace bitrail::plugin::collnet {
namespace {

using bootstrap::Address;
using bootstrap::UniqueFd;

// Bound, and shared with the one socket of this process that will listen there.
Status bind_port(const Address& address, UniqueFd* port) {
  const int family = address.storage.ss_family;
  UniqueFd made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  const int on = 1, off = 0;
  if (made) {
    (void)setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6) {
      (void)setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
  }
  if (!made || ::bind(made.get(), address.raw(), address.length) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "no port at {}: {}", to_text(address), strerror(errno));
  }
  *port = std::move(made);
  return {};
}

Address any_address(sa_family_t family) {
  Address any;
  any.storage.ss_family = family;
  any.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return any;
}

std::string hexadecimal(const Nonce& nonce) {
  std::string text;
  for (const uint8_t byte : nonce) text += fmt::format("{:02x}", byte);
  return text;
}

bootstrap::World world_of(const config::Settings& settings, const std::vector<Meeting>& ranks,
                          int rank, const UniqueFd& port) {
  bootstrap::World world;
  world.rank = rank;
  world.size = static_cast<int>(ranks.size());
  world.launcher = "nccl";
  world.job_id = fmt::format("{}/collnet/{:016x}", settings.job_id, ranks[0].comm_id);
  world.secret = settings.secret + hexadecimal(ranks[0].nonce);
  if (rank == 0) {
    world.rendezvous = to_text(bootstrap::local_address(port.get()));
    return world;
  }
  for (const Address& address : ranks[0].addresses) {
    if (!world.rendezvous.empty()) world.rendezvous += ',';
    world.rendezvous += to_text(address);
  }
  return world;
}

Status create(bitrail_comm* comm) {
  const Deadline deadline = Deadline::in_ms(comm->timeout_ms);
  if (comm->world.size > 1) {
    BITRAIL_TRY(
        bootstrap::Bootstrap::join(comm->world, comm->settings, deadline, &comm->bootstrap));
  }
  transport::Options wanted = api::transport_options(comm->settings, comm->world.size);
  wanted.identity = {
      .secret = comm->world.secret, .job_id = comm->world.job_id, .rank = comm->world.rank};
  std::unique_ptr<transport::Context> context;
  BITRAIL_TRY(transport::open(comm->settings.transport, wanted, &context));
  return api::start(comm, std::move(context), deadline);
}

}  // namespace

Status reserve(const config::Settings& settings, Meeting* meeting, UniqueFd* port) {
  if (getrandom(meeting->nonce.data(), meeting->nonce.size(), 0) !=
      static_cast<ssize_t>(meeting->nonce.size())) {
    return failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", strerror(errno));
  }
  if (!settings.interface.empty()) {
    Address address;
    BITRAIL_TRY(bootstrap::address_of_interface(settings.interface, &address));
    bootstrap::set_port(&address, 0);
    BITRAIL_TRY(bind_port(address, port));
    meeting->addresses = {bootstrap::local_address(port->get())};
    return {};
  }
  if (!bind_port(any_address(AF_INET6), port).ok()) {
    BITRAIL_TRY(bind_port(any_address(AF_INET), port));
  }
  return bootstrap::offered_addresses(bootstrap::port_of(bootstrap::local_address(port->get())),
                                      &meeting->addresses);
}

Status join(const config::Settings& settings, const std::vector<Meeting>& ranks, int rank,
            const UniqueFd& port, bitrail_comm_t* comm) {
  auto made = std::make_unique<bitrail_comm>();
  made->settings = settings;
  made->timeout_ms = settings.timeout_ms;
  made->world = world_of(settings, ranks, rank, port);
  Status status = create(made.get());
  if (!status.ok()) {
    // Whatever is wrong here may keep the others waiting: tell them if there is a way.
    if (made->bootstrap != nullptr) {
      made->bootstrap->report(
          {rank, status.code(), fmt::format("rank {}: {}", rank, status.text())});
    }
    return status;
  }
  *comm = made.release();
  return {};
}

}  // namespace bitrail::plugin::collnet
