#include "runtime/transport/emulated/cards.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace bitrail::transport::emulated {
namespace {

std::string segment_name(const std::string& job_id, const std::string& secret, int nodes) {
  const std::string text = fmt::format("{}\n{}\n{}\n{}", job_id, secret, nodes, getuid());
  uint8_t hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), hash);
  uint64_t front = 0;
  memcpy(&front, hash, sizeof(front));
  return fmt::format("/bitrail-link-{:016x}", front);
}

// Of a process that may belong to another user.
bool alive(int32_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

// Opening, taking a seat and removing exclude each other, so that nobody is left with a segment
// that was removed. Held for microseconds.
class Lock {
 public:
  explicit Lock(int fd) : fd_(fd) {
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() { flock(fd_, LOCK_UN); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

}  // namespace

Status Cards::open(const std::string& job_id, const std::string& secret, int nodes, int ranks,
                   std::unique_ptr<Cards>* cards) {
  std::unique_ptr<Cards> made(new Cards);
  made->name_ = segment_name(job_id, secret, nodes);
  made->node_count_ = nodes;
  made->seats_ = 4 * ranks + 16;  // several contexts a rank, and those of killed ones
  bool again = true;
  while (again) BITRAIL_TRY(made->try_open(&again));
  *cards = std::move(made);
  return {};
}

Status Cards::try_open(bool* again) {
  *again = false;
  const auto refuse = [this](const char* what) {
    return failure(BITRAIL_ERR_SYSTEM,
                   "link emulation (BITRAIL_LINK_MBPS, BITRAIL_LINK_US): {} {}: {}", what, name_,
                   strerror(errno));
  };
  fd_ = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return refuse("shm_open");
  const Lock lock(fd_);
  struct stat info {};
  if (fstat(fd_, &info) != 0) return refuse("fstat");
  if (info.st_nlink == 0) {  // removed between opening and locking
    close(fd_);
    fd_ = -1;
    *again = true;
    return {};
  }
  bytes_ = static_cast<size_t>(node_count_) * sizeof(Card) +
           static_cast<size_t>(seats_) * sizeof(std::atomic<int32_t>);
  // Fresh memory is zero: cards free since ever, all seats free.
  if (ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) return refuse("ftruncate");
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory_ == MAP_FAILED) {
    memory_ = nullptr;
    return refuse("mmap");
  }
  nodes_ = static_cast<Card*>(memory_);
  pids_ = reinterpret_cast<std::atomic<int32_t>*>(nodes_ + node_count_);
  for (int i = 0; i < seats_ && seat_ < 0; i++) {
    const int32_t pid = pids_[i].load();
    if (pid != 0 && alive(pid)) continue;
    pids_[i].store(getpid());
    seat_ = i;
  }
  if (seat_ >= 0) return {};
  return failure(BITRAIL_ERR_SYSTEM,
                 "link emulation: {} contexts use {} already; give the job its own BITRAIL_JOB_ID",
                 seats_, name_);
}

Cards::~Cards() {
  if (seat_ >= 0) {
    const Lock lock(fd_);
    pids_[seat_].store(0);
    bool used = false;
    for (int i = 0; i < seats_ && !used; i++) {
      const int32_t pid = pids_[i].load();
      used = pid != 0 && alive(pid);
    }
    if (!used) shm_unlink(name_.c_str());
  }
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (fd_ >= 0) close(fd_);
}

}  // namespace bitrail::transport::emulated
