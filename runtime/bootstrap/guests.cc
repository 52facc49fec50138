#include "runtime/bootstrap/guests.h"

#include <algorithm>

#include "runtime/trace/log.h"

namespace bitrail::bootstrap {
namespace {

constexpr int kGuestMs = 10'000;  // from accept to the first frame
constexpr int kAlertMs = 500;     // for a refused peer to read why
constexpr size_t kMaxGuests = 512;

}  // namespace

void Guests::collect(std::vector<pollfd>* polled, int* timeout_ms) {
  listener_at_ = SIZE_MAX;
  if (listener_) {
    listener_at_ = polled->size();
    polled->push_back({listener_.get(), POLLIN, 0});
  }
  for (Visit& visit : visits_) {
    *timeout_ms = visit.until.left_ms(*timeout_ms);
    visit.polled_at = SIZE_MAX;
    if (visit.refused) continue;
    visit.polled_at = polled->size();
    const auto events =
        static_cast<short>(visit.connection->wants_to_send() ? POLLIN | POLLOUT : POLLIN);
    polled->push_back({visit.connection->fd(), events, 0});
  }
}

void Guests::refuse(Visit* visit, const Status& reason) {
  refused_ = reason;
  log::warn("refused a connection from {}: {}", visit->connection->address(), reason.text());
  visit->connection->finish_sending();
  visit->refused = true;
  visit->until = Deadline::in_ms(kAlertMs);
}

void Guests::serve(Visit* visit, std::vector<Guest>* arrived) {
  Connection& connection = *visit->connection;
  connection.flush();
  connection.receive();
  Guest guest;
  if (connection.proven() && connection.next(&guest.first)) {
    guest.connection = std::move(visit->connection);
    arrived->push_back(std::move(guest));
  } else if (!connection.status().ok()) {
    refuse(visit, connection.status());
  } else if (connection.closed()) {
    log::trace("{} connected and left without proving itself", connection.address());
    visit->connection.reset();
  }
}

Status Guests::attend(const std::vector<pollfd>& polled, std::vector<Guest>* arrived) {
  for (Visit& visit : visits_) {
    const bool ready = visit.polled_at != SIZE_MAX && polled[visit.polled_at].revents != 0;
    if (ready) serve(&visit, arrived);
  }
  std::erase_if(visits_, [](const Visit& visit) {
    if (!visit.connection) return true;
    if (visit.until.passed() && !visit.refused) {
      log::warn("dropped a connection from {}: it did not prove itself within {} ms",
                visit.connection->address(), kGuestMs);
    }
    return visit.until.passed();
  });
  if (listener_at_ == SIZE_MAX || polled[listener_at_].revents == 0) return {};
  while (true) {
    UniqueFd socket;
    BITRAIL_TRY(accept_from(listener_.get(), &socket));
    if (!socket) return {};
    if (visits_.size() >= kMaxGuests) visits_.pop_front();
    visits_.push_back(
        {std::make_unique<Connection>(std::move(socket), Side::acceptor, world_, timeout_ms_),
         Deadline::in_ms(kGuestMs)});
  }
}

}  // namespace bitrail::bootstrap
