// The cache of registrations; see memory.h.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/trace/log.h"
#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/fork.h"
#include "runtime/transport/verbs/memory.h"

namespace bitrail::transport::verbs {
namespace {

constexpr unsigned kReadable = IBV_ACCESS_REMOTE_READ;
constexpr unsigned kWritable =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

std::string memlock_text() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{} bytes", limit.rlim_cur);
}

Status refused(const Port& port, size_t bytes, size_t held, int error) {
  return failure(BITRAIL_ERR_SYSTEM,
                 "{} cannot register {} bytes: {}. The limit of locked memory is {} and {} "
                 "registrations are held; raise it by `ulimit -l unlimited`, memlock in "
                 "/etc/security/limits.conf, LimitMEMLOCK=infinity of a systemd unit, or "
                 "--ulimit memlock=-1 of a container",
                 port.name, bytes, errno_text("ibv_reg_mr", error), memlock_text(), held);
}

}  // namespace

RegistrationCache::RegistrationCache(Port* port, const IbOptions& options)
    : port_(port), bound_(static_cast<size_t>(std::max<int64_t>(options.registration_cache, 0))) {
  prepare_fork();
  const bool possible = table().reg_mr_iova2 != nullptr;
  relaxed_ = possible && options.relaxed_ordering != "off";
  if (!possible && options.relaxed_ordering == "on") {
    log::warn("BITRAIL_IB_RELAXED_ORDERING=on: this libibverbs does not have it");
  }
}

RegistrationCache::~RegistrationCache() {
  for (auto& [mr, entry] : entries_) {
    if (entry->users > 0) {
      log::warn("{}: {} bytes are still registered when it is closed", port_->name,
                entry->end - entry->start);
    }
    table().dereg_mr(mr);
  }
}

size_t RegistrationCache::kept() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

size_t RegistrationCache::in_use() const {
  const std::lock_guard lock(mutex_);
  return entries_.size() - unused_.size();
}

bool RegistrationCache::relaxed_ordering() const {
  const std::lock_guard lock(mutex_);
  return relaxed_;
}

RegistrationCache::Entry* RegistrationCache::find(uint64_t start, uint64_t end) {
  auto next = by_start_.upper_bound(start);
  if (next == by_start_.begin()) return nullptr;
  Entry* entry = std::prev(next)->second;
  return entry->end >= end ? entry : nullptr;
}

ibv_mr* RegistrationCache::register_with(uint64_t start, uint64_t end, unsigned access) {
  void* data = reinterpret_cast<void*>(start);  // NOLINT(performance-no-int-to-ptr)
  if (!relaxed_) return table().reg_mr(port_->pd, data, end - start, static_cast<int>(access));
  return table().reg_mr_iova2(port_->pd, data, end - start, start,
                              access | IBV_ACCESS_RELAXED_ORDERING);
}

// Null, with errno.
ibv_mr* RegistrationCache::register_range(uint64_t start, uint64_t end) {
  ibv_mr* mr = register_with(start, end, kWritable);
  if (mr == nullptr && relaxed_ && (errno == EOPNOTSUPP || errno == EINVAL)) {
    relaxed_ = false;
    mr = register_with(start, end, kWritable);
    relaxed_ = mr == nullptr;  // it was not that
  }
  if (mr == nullptr && (errno == EFAULT || errno == EACCES)) {
    const int error = errno;
    mr = register_with(start, end, kReadable);
    if (mr == nullptr) errno = error;
  }
  return mr;
}

// Of the unused ones; false: there are none.
bool RegistrationCache::evict_half() {
  if (unused_.empty()) return false;
  for (size_t count = (unused_.size() + 1) / 2; count > 0; count--) drop(unused_.front());
  return true;
}

Status RegistrationCache::add(uint64_t start, uint64_t end, Entry** added) {
  ibv_mr* mr = register_range(start, end);
  // The limit may be reached by what nobody needs any more.
  while (mr == nullptr && errno == ENOMEM && evict_half()) mr = register_range(start, end);
  if (mr == nullptr) return refused(*port_, end - start, entries_.size(), errno);
  auto made = std::make_unique<Entry>();
  made->mr = mr;
  made->start = start;
  made->end = end;
  // Those inside the new one are not found any more.
  for (auto next = by_start_.lower_bound(start); next != by_start_.end();) {
    Entry* inner = next->second;
    ++next;
    if (inner->end > end) break;
    hide(inner);
  }
  by_start_[start] = made.get();
  *added = made.get();
  entries_[mr] = std::move(made);
  return {};
}

Status RegistrationCache::acquire(void* data, size_t bytes, ibv_mr** mr, Keep keep) {
  *mr = nullptr;
  if (bytes == 0) return {};
  static const auto kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uint64_t>(data);
  const uint64_t start = address & ~(kPage - 1);
  const uint64_t end = (address + bytes + kPage - 1) & ~(kPage - 1);
  if (data == nullptr || address + bytes < address || end <= start) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} cannot register {} bytes at {}", port_->name,
                   bytes, data);
  }
  const std::lock_guard lock(mutex_);
  Entry* entry = find(start, end);
  if (entry == nullptr) {
    BITRAIL_TRY(add(start, end, &entry));
  } else if (entry->users == 0) {
    unused_.erase(entry->place);
  }
  entry->users++;
  // A promise for a part is none for the whole.
  if (keep == Keep::unused && entry->start == start && entry->end == end) entry->keep = true;
  *mr = entry->mr;
  return {};
}

void RegistrationCache::release(ibv_mr* mr) {
  if (mr == nullptr) return;
  const std::lock_guard lock(mutex_);
  Entry* entry = entries_.at(mr).get();
  if (--entry->users > 0) return;
  entry->place = unused_.insert(unused_.end(), entry);
  if (!entry->keep || !entry->findable) drop(entry);
  while (unused_.size() > bound_) drop(unused_.front());
}

void RegistrationCache::forget(void* data, size_t bytes) {
  const auto from = reinterpret_cast<uint64_t>(data);
  const uint64_t to = from + bytes < from ? UINT64_MAX : from + bytes;
  const std::lock_guard lock(mutex_);
  auto next = by_start_.upper_bound(from);
  // Ends rise with starts: the first that may reach into the range is found by going back.
  while (next != by_start_.begin() && std::prev(next)->second->end > from) --next;
  while (next != by_start_.end() && next->first < to) {
    Entry* entry = next->second;
    ++next;
    hide(entry);
  }
}

// Ends an unused entry; a used one serves those that have it, and ends with the last.
void RegistrationCache::hide(Entry* entry) {
  if (entry->users == 0) return drop(entry);
  by_start_.erase(entry->start);
  entry->findable = false;
}

// An unused one.
void RegistrationCache::drop(Entry* entry) {
  unused_.erase(entry->place);
  if (entry->findable) by_start_.erase(entry->start);
  const int error = table().dereg_mr(entry->mr);
  if (error != 0) log::warn("{}: {}", port_->name, errno_text("ibv_dereg_mr", error));
  entries_.erase(entry->mr);
}

}  // namespace bitrail::transport::verbs
