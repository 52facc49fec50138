// Starts of small worlds for the bootstrap's tests.
#pragma once

#include <netinet/in.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/socket.h"
#include "tests/support/spawn.h"

namespace bitrail::bootstrap::test {

// A port of loopback that was free a moment ago.
inline int free_port() {
  Address address;
  address.storage.ss_family = AF_INET;
  address.length = sizeof(sockaddr_in);
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  UniqueFd listener;
  bool in_use = false;
  if (!listen_at(address, &listener, &in_use).ok()) return 0;
  return port_of(local_address(listener.get()));
}

inline std::string free_rendezvous() { return fmt::format("127.0.0.1:{}", free_port()); }

inline World world_of(int rank, int size, const std::string& rendezvous) {
  World world;
  world.rank = rank;
  world.size = size;
  world.launcher = "callback";
  world.rendezvous = rendezvous;
  world.job_id = "job";
  world.secret = "secret";
  return world;
}

inline Status join(const World& world, int timeout_ms, std::unique_ptr<Bootstrap>* bootstrap) {
  config::Settings settings;
  settings.timeout_ms = timeout_ms;
  return Bootstrap::join(world, settings, Deadline::in_ms(timeout_ms), bootstrap);
}

// Everybody joins at once as a thread of its own; the results by place in `worlds`.
inline std::vector<Status> join_all(const std::vector<World>& worlds, int timeout_ms,
                                    std::vector<std::unique_ptr<Bootstrap>>* bootstraps) {
  std::vector<Status> results(worlds.size());
  bootstraps->clear();
  bootstraps->resize(worlds.size());
  bitrail::test::spawn(static_cast<int>(worlds.size()), [&](int i) {
    const auto at = static_cast<size_t>(i);
    results[at] = join(worlds[at], timeout_ms, &(*bootstraps)[at]);
  });
  return results;
}

}  // namespace bitrail::bootstrap::test
