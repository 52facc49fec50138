#include "runtime/bootstrap/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "runtime/bootstrap/exchange.h"
#include "runtime/bootstrap/guests.h"
#include "runtime/trace/log.h"

namespace bitrail::bootstrap {
namespace {

constexpr int kRetryMs = 20, kMaxRetryMs = 200;  // between attempts to connect or to listen
constexpr int kAttemptMs = 3000;                 // one of several addresses
constexpr int kGraceMs = 1000;  // rank 0 tells why the start failed a little after the others' time

// "3, 5, 6 and 40 more".
std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  const size_t shown = std::min<size_t>(ranks.size(), 16);
  for (size_t i = 0; i < shown; i++) text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (shown < ranks.size()) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

class Meeting {
 public:
  Meeting(const World& world, const config::Settings& settings, Deadline deadline)
      : world_(world),
        settings_(settings),
        deadline_(deadline),
        guests_(world_, settings.timeout_ms) {}

  const World& world() const { return world_; }

  Status run(std::vector<Member>* members) {
    Status status = world_.rank == 0 ? host() : attend();
    if (status.ok()) {
      *members = std::move(members_);
    } else {
      tell_all({-1, status.code(), status.text()});
    }
    return status;
  }

 private:
  // rank 0
  Status host();
  Status open_rendezvous(std::string* addresses);
  Status listen_at_rendezvous(const Address& address, UniqueFd* listener);
  Status enlist(Guest guest, std::vector<bool>* here);
  Status gather_all();
  void tell_late_comers(const Status& status);
  Status nobody_missing(const std::vector<bool>& here);
  void welcome_all();
  // others
  Status attend();
  Status find_host(std::unique_ptr<Connection>* host);
  Status listen_for_children(const Connection& host, std::string* address);
  Status wait_for_welcome(std::string* parent);
  Status join_parent(const std::string& address, const std::string& mine);
  Status wait_for_children();
  Status adopt(Guest guest, std::vector<int>* missing);
  // all
  Status prove(const Address& address, Deadline deadline, std::unique_ptr<Connection>* connection);
  Status step(Deadline deadline);
  Status listen_to(Member* member);
  void pause(int ms);
  void tell_all(const Failure& failure);

  World world_;
  const config::Settings& settings_;
  Deadline deadline_;
  Guests guests_;
  std::vector<Member> members_;
  std::vector<Guest> arrived_;  // proven, not looked at yet
  std::string welcome_;
  bool welcomed_ = false;
};

void Meeting::pause(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(deadline_.left_ms(ms)));
}

void Meeting::tell_all(const Failure& failure) {
  for (Member& member : members_) {
    member.connection->send(Kind::failure, encode(failure));
    member.connection->finish_sending();
  }
}

// Before the tree stands, members have only failures to tell; and rank 0 the welcome.
Status Meeting::listen_to(Member* member) {
  Connection& connection = *member->connection;
  connection.flush();
  connection.receive();
  Frame frame;
  while (connection.next(&frame)) {
    Failure failed;
    if (frame.kind == Kind::failure && decode(frame.payload, world_.size, &failed)) {
      return Status(failed.code, failed.text);
    }
    if (frame.kind != Kind::welcome || member->rank != 0 || welcomed_) {
      return failure(BITRAIL_ERR_PROTOCOL, "rank {} ({}) sent an unexpected frame while starting",
                     member->rank, member->address);
    }
    welcome_.assign(frame.payload.begin(), frame.payload.end());
    welcomed_ = true;
  }
  if (!connection.closed()) return {};
  if (!connection.status().ok()) return connection.status();
  return failure(BITRAIL_ERR_PEER_LOST, "rank {} ({}) is lost: it went while the job started: {}",
                 member->rank, member->address, connection.detail());
}

// Waits for something to happen and handles it. Children are not listened to: what they say is for
// the tree.
Status Meeting::step(Deadline deadline) {
  std::vector<pollfd> polled;
  int timeout_ms = deadline.left_ms(1000);
  const bool listening = world_.rank == 0;
  for (const Member& member : members_) {
    const bool heard = listening || member.role != Role::child;
    const auto events = static_cast<short>((heard ? POLLIN : 0) |
                                           (member.connection->wants_to_send() ? POLLOUT : 0));
    polled.push_back({events == 0 ? -1 : member.connection->fd(), events, 0});
  }
  guests_.collect(&polled, &timeout_ms);
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) {
    return failure(BITRAIL_ERR_SYSTEM, "poll failed while the job started");
  }
  for (size_t i = 0; i < members_.size(); i++) {
    if (polled[i].revents != 0) BITRAIL_TRY(listen_to(&members_[i]));
  }
  return guests_.attend(polled, &arrived_);
}

// Connects and proves; a peer that just goes (its listener was closing) is BITRAIL_ERR_SYSTEM, as
// is one that does not answer.
Status Meeting::prove(const Address& address, Deadline deadline,
                      std::unique_ptr<Connection>* connection) {
  UniqueFd socket;
  BITRAIL_TRY(connect_to(address, deadline, &socket));
  auto made = std::make_unique<Connection>(std::move(socket), Side::connector, world_,
                                           settings_.timeout_ms);
  while (!made->proven()) {
    pollfd entry{made->fd(), static_cast<short>(made->wants_to_send() ? POLLIN | POLLOUT : POLLIN),
                 0};
    (void)::poll(&entry, 1, deadline.left_ms(100));
    made->flush();
    made->receive();
    if (made->closed() && !made->proven()) {
      made->finish_sending();
      if (!made->status().ok()) {
        return failure(made->status().code(), "{} at {}", made->status().text(), to_text(address));
      }
      return failure(BITRAIL_ERR_SYSTEM, "{} went during the proof of the secret: {}",
                     to_text(address), made->detail());
    }
    if (!made->proven() && deadline.passed()) {
      return failure(BITRAIL_ERR_SYSTEM, "{} does not answer", to_text(address));
    }
    for (Member& member : members_) {
      if (member.role != Role::child) BITRAIL_TRY(listen_to(&member));
    }
  }
  *connection = std::move(made);
  return {};
}

// ---- rank 0 ----

Status Meeting::listen_at_rendezvous(const Address& address, UniqueFd* listener) {
  while (true) {
    bool in_use = false;
    Status status = listen_at(address, listener, &in_use);
    if (status.ok() || !in_use || deadline_.passed()) return status;
    // Perhaps another process of this job claims rank 0 too: then it says so, to both. Perhaps a
    // previous communicator's rendezvous is closing: then it is free soon.
    std::unique_ptr<Connection> other;
    const Deadline brief{std::min(deadline_.at_ns, Deadline::in_ms(kAttemptMs / 2).at_ns)};
    if (prove(address, brief, &other).ok()) {
      other->send(Kind::enlist, encode(Enlist{world_.rank, world_.size, ""}));
      members_.push_back({std::move(other), 0, Role::parent, to_text(address)});
      Status refused;
      while (refused.ok() && !brief.passed()) refused = step(brief);
      members_.clear();
      if (refused.code() == BITRAIL_ERR_RANK_TAKEN || refused.code() == BITRAIL_ERR_WORLD_SIZE) {
        return refused;
      }
    }
    pause(kRetryMs);
  }
}

Status Meeting::open_rendezvous(std::string* addresses) {
  UniqueFd listener;
  if (!world_.rendezvous.empty()) {
    std::string host;
    uint16_t port = 0;
    BITRAIL_TRY(split_host_port(world_.rendezvous, "BITRAIL_RENDEZVOUS", &host, &port));
    std::vector<Address> found;
    BITRAIL_TRY(resolve(host, port, deadline_, &found));
    const Status status = listen_at_rendezvous(found.front(), &listener);
    if (status.code() == BITRAIL_ERR_SYSTEM) {
      return failure(status.code(),
                     "rank 0 {} (BITRAIL_RENDEZVOUS names a free port of rank 0's host)",
                     status.text());
    }
    BITRAIL_TRY(status);
    *addresses = world_.rendezvous;
  } else if (!settings_.interface.empty()) {
    Address address;
    bool in_use = false;
    BITRAIL_TRY(address_of_interface(settings_.interface, &address));
    BITRAIL_TRY(listen_at(address, &listener, &in_use));
    *addresses = to_text(local_address(listener.get()));
  } else {
    std::vector<Address> offered;
    BITRAIL_TRY(listen_anywhere(&listener));
    BITRAIL_TRY(offered_addresses(port_of(local_address(listener.get())), &offered));
    for (const Address& address : offered) {
      const std::string text = to_text(address);
      if (addresses->size() + text.size() > 500) break;  // fits the exchange's entry
      *addresses += (addresses->empty() ? "" : ",") + text;
    }
  }
  guests_.listen(std::move(listener));
  return {};
}

Status Meeting::enlist(Guest guest, std::vector<bool>* here) {
  Enlist enlist;
  Connection& connection = *guest.connection;
  if (guest.first.kind != Kind::enlist || !decode(guest.first.payload, &enlist) ||
      enlist.rank != connection.peer_rank()) {
    log::warn("{} proved the secret and then made no sense", connection.address());
    return {};
  }
  Status status;
  if (enlist.size != world_.size || enlist.rank < 0 || enlist.rank >= world_.size) {
    status = failure(BITRAIL_ERR_WORLD_SIZE,
                     "rank {} ({}) was started with world size {}, rank 0 with {}", enlist.rank,
                     connection.address(), enlist.size, world_.size);
  } else if (enlist.rank == 0 || (*here)[static_cast<size_t>(enlist.rank)]) {
    status = failure(BITRAIL_ERR_RANK_TAKEN, "two processes claim rank {}; the second is at {}",
                     enlist.rank, connection.address());
  } else {
    (*here)[static_cast<size_t>(enlist.rank)] = true;
  }
  const Role role = enlist.rank > 0 && parent_of(enlist.rank) == 0 ? Role::child : Role::enlisted;
  members_.push_back({std::move(guest.connection), enlist.rank, role, enlist.address});
  return status;
}

Status Meeting::nobody_missing(const std::vector<bool>& here) {
  std::vector<int> missing;
  for (int rank = 1; rank < world_.size; rank++) {
    if (!here[static_cast<size_t>(rank)]) missing.push_back(rank);
  }
  if (missing.empty()) return {};
  const std::string text = fmt::format(
      "rank(s) {} of {} did not come to the rendezvous at {} in time "
      "(BITRAIL_TIMEOUT_MS)",
      list_of(missing), world_.size, world_.rendezvous);
  if (guests_.refused().ok()) return Status(BITRAIL_ERR_TIMEOUT, text);
  return failure(guests_.refused().code(), "{}; a connection was refused: {}", text,
                 guests_.refused().text());
}

void Meeting::welcome_all() {
  std::vector<std::string> address(static_cast<size_t>(world_.size));
  for (const Member& member : members_) {
    address[static_cast<size_t>(member.rank)] = member.address;
  }
  for (Member& member : members_) {
    const std::string& parent = address[static_cast<size_t>(parent_of(member.rank))];
    member.connection->send(
        Kind::welcome, std::span(reinterpret_cast<const uint8_t*>(parent.data()), parent.size()));
  }
}

Status Meeting::host() {
  std::string addresses;
  Status listening = open_rendezvous(&addresses);
  if (world_.exchange) {
    BITRAIL_TRY(exchange_rendezvous(listening, addresses, &world_));
  }
  BITRAIL_TRY(listening);
  Status status = gather_all();
  if (!status.ok() && !deadline_.passed()) tell_late_comers(status);
  return status;
}

// A failure is for the ranks that are just arriving too: they would take a closed door for a rank 0
// that is late.
void Meeting::tell_late_comers(const Status& status) {
  const Deadline until = Deadline::in_ms(kGraceMs);
  const std::vector<uint8_t> payload = encode(Failure{-1, status.code(), status.text()});
  size_t told = members_.size();
  tell_all({-1, status.code(), status.text()});
  const std::vector<Member> leaving = std::exchange(members_, {});
  std::vector<Guest> late;
  while (told + 1 < static_cast<size_t>(world_.size) && !until.passed()) {
    for (Guest& guest : std::exchange(arrived_, {})) {
      guest.connection->send(Kind::failure, payload);
      guest.connection->finish_sending();
      late.push_back(std::move(guest));
      told++;
    }
    if (!step(until).ok()) return;
  }
}

Status Meeting::gather_all() {
  std::vector<bool> here(static_cast<size_t>(world_.size));
  while (members_.size() + 1 < static_cast<size_t>(world_.size)) {
    if (deadline_.passed()) return nobody_missing(here);
    BITRAIL_TRY(step(deadline_));
    while (!arrived_.empty()) {  // those behind a failing one stay, to be told
      Guest guest = std::move(arrived_.back());
      arrived_.pop_back();
      BITRAIL_TRY(enlist(std::move(guest), &here));
    }
  }
  guests_.close();  // before anybody can start a next communicator at the same address
  welcome_all();
  return {};
}

// ---- others ----

Status Meeting::find_host(std::unique_ptr<Connection>* host) {
  std::vector<Address> addresses;
  for (size_t at = 0; at <= world_.rendezvous.size();) {
    const size_t comma = std::min(world_.rendezvous.find(',', at), world_.rendezvous.size());
    std::string name;
    uint16_t port = 0;
    BITRAIL_TRY(split_host_port(world_.rendezvous.substr(at, comma - at), "BITRAIL_RENDEZVOUS",
                                &name, &port));
    std::vector<Address> found;
    BITRAIL_TRY(resolve(name, port, deadline_, &found));
    addresses.insert(addresses.end(), found.begin(), found.end());
    at = comma + 1;
  }
  int wait_ms = kRetryMs;
  Status last;
  while (true) {
    for (const Address& address : addresses) {
      const Deadline attempt{addresses.size() == 1
                                 ? deadline_.at_ns
                                 : std::min(deadline_.at_ns, Deadline::in_ms(kAttemptMs).at_ns)};
      last = prove(address, attempt, host);
      if (last.ok() && (*host)->peer_rank() != 0) {
        last = failure(BITRAIL_ERR_PROTOCOL, "the process at the rendezvous {} is rank {}, not 0",
                       to_text(address), (*host)->peer_rank());
      }
      if (last.ok()) return {};
      // Who was named says no: that stands. Of all addresses of a host, another may be the right
      // one.
      const bool named = !world_.exchange || addresses.size() == 1;
      if (named && last.code() != BITRAIL_ERR_SYSTEM) return last;
    }
    if (deadline_.passed()) {
      if (last.code() != BITRAIL_ERR_SYSTEM) return last;
      return failure(
          BITRAIL_ERR_TIMEOUT,
          "rank 0 does not answer at {} within BITRAIL_TIMEOUT_MS (is it running, and is "
          "BITRAIL_RENDEZVOUS the same everywhere?): {}",
          world_.rendezvous, last.text());
    }
    pause(wait_ms);
    wait_ms = std::min(2 * wait_ms, kMaxRetryMs);
  }
}

// At the address that reaches rank 0, unless BITRAIL_INTERFACE says otherwise.
Status Meeting::listen_for_children(const Connection& host, std::string* address) {
  Address local = host.local();
  if (!settings_.interface.empty()) {
    BITRAIL_TRY(address_of_interface(settings_.interface, &local));
  }
  set_port(&local, 0);
  UniqueFd listener;
  bool in_use = false;
  BITRAIL_TRY(listen_at(local, &listener, &in_use));
  *address = to_text(local_address(listener.get()));
  guests_.listen(std::move(listener));
  return {};
}

Status Meeting::wait_for_welcome(std::string* parent) {
  const Deadline patient{deadline_.at_ns == INT64_MAX ? INT64_MAX
                                                      : deadline_.at_ns + kGraceMs * 1'000'000LL};
  while (!welcomed_) {
    if (patient.passed()) {
      return failure(BITRAIL_ERR_TIMEOUT,
                     "rank {} waited for rank 0 ({}) to gather all ranks, longer than "
                     "BITRAIL_TIMEOUT_MS",
                     world_.rank, world_.rendezvous);
    }
    BITRAIL_TRY(step(patient));
  }
  *parent = welcome_;
  return {};
}

Status Meeting::join_parent(const std::string& text, const std::string& mine) {
  const int parent = parent_of(world_.rank);
  std::string host;
  uint16_t port = 0;
  std::vector<Address> addresses;
  BITRAIL_TRY(split_host_port(text, "address of the parent rank", &host, &port));
  BITRAIL_TRY(resolve(host, port, deadline_, &addresses));
  std::unique_ptr<Connection> connection;
  while (true) {
    Status status = prove(addresses.front(), deadline_, &connection);
    if (status.ok()) break;
    if (status.code() != BITRAIL_ERR_SYSTEM) return status;
    if (deadline_.passed()) {
      return failure(BITRAIL_ERR_TIMEOUT,
                     "rank {} cannot reach rank {} (its parent in the tree) within "
                     "BITRAIL_TIMEOUT_MS; BITRAIL_INTERFACE chooses the address it offers: {}",
                     world_.rank, parent, status.text());
    }
    pause(kRetryMs);
  }
  if (connection->peer_rank() != parent) {
    return failure(BITRAIL_ERR_PROTOCOL, "{} is rank {}, not rank {}", text,
                   connection->peer_rank(), parent);
  }
  connection->send(Kind::child, encode(Enlist{world_.rank, world_.size, mine}));
  members_.push_back({std::move(connection), parent, Role::parent, text});
  return {};
}

Status Meeting::adopt(Guest guest, std::vector<int>* missing) {
  Enlist enlist;
  const bool sane = guest.first.kind == Kind::child && decode(guest.first.payload, &enlist) &&
                    enlist.rank == guest.connection->peer_rank() && enlist.size == world_.size;
  const auto found = std::find(missing->begin(), missing->end(), enlist.rank);
  if (!sane || found == missing->end()) {
    log::warn("{} proved the secret but is no child of rank {}", guest.connection->address(),
              world_.rank);
    return {};
  }
  missing->erase(found);
  members_.push_back({std::move(guest.connection), enlist.rank, Role::child, enlist.address});
  return {};
}

Status Meeting::wait_for_children() {
  std::vector<int> missing;
  for (int i = 1; i <= kArity; i++) {
    const int64_t rank = int64_t{world_.rank} * kArity + i;
    if (rank < world_.size) missing.push_back(static_cast<int>(rank));
  }
  while (!missing.empty()) {
    if (deadline_.passed()) {
      return failure(BITRAIL_ERR_TIMEOUT,
                     "rank(s) {} did not connect to rank {} (their parent in the tree) within "
                     "BITRAIL_TIMEOUT_MS; BITRAIL_INTERFACE chooses the address it offers",
                     list_of(missing), world_.rank);
    }
    // Children may have come while this rank still waited for its own welcome.
    for (Guest& guest : std::exchange(arrived_, {})) {
      BITRAIL_TRY(adopt(std::move(guest), &missing));
    }
    if (!missing.empty()) BITRAIL_TRY(step(deadline_));
  }
  guests_.close();
  return {};
}

Status Meeting::attend() {
  if (world_.exchange) BITRAIL_TRY(exchange_rendezvous({}, "", &world_));
  std::unique_ptr<Connection> host;
  std::string mine, parent;
  BITRAIL_TRY(find_host(&host));
  BITRAIL_TRY(listen_for_children(*host, &mine));
  host->send(Kind::enlist, encode(Enlist{world_.rank, world_.size, mine}));
  const bool below_host = parent_of(world_.rank) == 0;
  const std::string address = host->address();
  members_.push_back({std::move(host), 0, below_host ? Role::parent : Role::enlisted, address});
  BITRAIL_TRY(wait_for_welcome(&parent));
  if (!below_host) BITRAIL_TRY(join_parent(parent, mine));
  return wait_for_children();
}

}  // namespace

Status meet(World* world, const config::Settings& settings, Deadline deadline,
            std::vector<Member>* members) {
  Meeting meeting(*world, settings, deadline);
  Status status = meeting.run(members);
  *world = meeting.world();
  return status;
}

}  // namespace bitrail::bootstrap
