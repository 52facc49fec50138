#include "tests/support/fake_verbs.h"

#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "tests/support/fake_verbs_state.h"

namespace bitrail::test {
namespace fake {

State* g_state = nullptr;

int enter(Call call, const ibv_context* context) {
  State& s = state();
  s.counters.calls[static_cast<int>(call)]++;
  Failure& failure = s.failures[static_cast<int>(call)];
  if (failure.count > 0 && failure.skip-- <= 0) {
    failure.count--;
    return failure.error;
  }
  return context != nullptr && device_of(context)->removed ? ENODEV : 0;
}

FakePort* port_of(const ibv_context* context, int port) {
  std::vector<FakePort>& ports = device_of(context)->facts.ports;
  return port < 1 || port > static_cast<int>(ports.size()) ? nullptr : &ports[port - 1];
}

void signal_fd(int fd) {
  const uint64_t one = 1;
  if (write(fd, &one, sizeof(one)) != static_cast<ssize_t>(sizeof(one))) abort();
}

void drain_fd(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  uint64_t one = 0;
  if (poll(&entry, 1, 0) == 1 && read(fd, &one, sizeof(one)) < 0 && errno != EAGAIN) abort();
}

}  // namespace fake

using fake::g_state;
using fake::Lock;

bool FakeCounters::clean() const {
  return contexts == 0 && pds == 0 && mrs == 0 && channels == 0 && cqs == 0 && qps == 0 &&
         overruns == 0 && stuck == 0;
}

FakeGid fake_gid(const std::string& text, int version) {
  FakeGid made;
  made.version = version;
  in_addr four{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) {
    made.gid.raw[10] = made.gid.raw[11] = 0xff;
    memcpy(made.gid.raw + 12, &four, sizeof(four));
  } else if (inet_pton(AF_INET6, text.c_str(), made.gid.raw) != 1) {
    abort();
  }
  return made;
}

FakeVerbs::FakeVerbs() {
  if (g_state != nullptr) abort();  // one at a time
  g_state = new fake::State;
  fake::fill_devices(&g_state->table);
  fake::fill_memory(&g_state->table);
  fake::fill_completions(&g_state->table);
  fake::fill_queue_pairs(&g_state->table);
  transport::verbs::replace_table(&g_state->table);
}

FakeVerbs::~FakeVerbs() {
  transport::verbs::replace_table(nullptr);
  for (auto& [number, qp] : g_state->qps) delete qp;
  for (fake::Cq* cq : g_state->cqs) delete cq;
  for (fake::Channel* channel : g_state->channels) {
    close(channel->fd);
    delete channel;
  }
  for (auto& [key, mr] : g_state->by_lkey) delete mr;
  for (fake::Pd* pd : g_state->pds) delete pd;
  for (fake::Context* context : g_state->contexts) {
    close(context->async_fd);
    delete context;
  }
  delete g_state;
  g_state = nullptr;
}

transport::verbs::Table& FakeVerbs::table() { return g_state->table; }

void FakeVerbs::add_device(FakeDevice facts) {
  const Lock lock(g_state->spin);
  auto made = std::make_unique<fake::Device>();
  const size_t number = g_state->devices.size();
  if (facts.guid == 0) facts.guid = 0x0002'c903'0000'0000U + 0x100 * (number + 1);
  for (size_t i = 0; i < facts.ports.size(); i++) {
    FakePort& port = facts.ports[i];
    if (port.lid == 0) port.lid = static_cast<uint16_t>(16 * (number + 1) + i);
    if (!port.gids.empty()) continue;
    FakeGid local = fake_gid("fe80::", 1);
    const uint64_t guid = htobe64(facts.guid + i);
    memcpy(local.gid.raw + 8, &guid, sizeof(guid));
    port.gids.push_back(local);
    if (!port.roce) continue;
    local.version = 2;
    port.gids.push_back(local);
    const std::string four = fmt::format("10.{}.{}.{}", i, number / 250, number % 250 + 1);
    port.gids.push_back(fake_gid(four, 1));
    port.gids.push_back(fake_gid(four, 2));
  }
  snprintf(made->name, sizeof(made->name), "%s", facts.name.c_str());
  made->node_type = IBV_NODE_CA;
  made->transport_type = IBV_TRANSPORT_IB;
  made->facts = std::move(facts);
  g_state->devices.push_back(std::move(made));
}

FakeCounters FakeVerbs::counters() const {
  const Lock lock(g_state->spin);
  return g_state->counters;
}

std::vector<FakeRegistration> FakeVerbs::registrations() const {
  const Lock lock(g_state->spin);
  std::vector<const fake::Mr*> alive;
  alive.reserve(g_state->by_lkey.size());
  for (const auto& [key, mr] : g_state->by_lkey) alive.push_back(mr);
  std::sort(alive.begin(), alive.end(),
            [](const fake::Mr* a, const fake::Mr* b) { return a->order < b->order; });
  std::vector<FakeRegistration> list;
  list.reserve(alive.size());
  for (const fake::Mr* mr : alive) {
    list.push_back({reinterpret_cast<uint64_t>(mr->addr), mr->length, mr->access, mr->with_iova});
  }
  return list;
}

void FakeVerbs::fail(Call call, int error, int count, int skip) {
  const Lock lock(g_state->spin);
  g_state->failures[static_cast<int>(call)] = {error, count, skip};
}

void FakeVerbs::set_retry_ns(int64_t ns) {
  const Lock lock(g_state->spin);
  g_state->retry_ns = ns;
}

void FakeVerbs::expire_retries() {
  const Lock lock(g_state->spin);
  for (auto& [number, qp] : g_state->qps) {
    if (qp->waiting_since != 0) qp->waiting_since = INT64_MIN / 2;
  }
  fake::deliver_all(true);
}

void FakeVerbs::set_reordering(uint64_t seed) {
  const Lock lock(g_state->spin);
  g_state->reordering = true;
  g_state->random.seed(seed);
}

}  // namespace bitrail::test
