// What the ranks of one communicator tell each other, as through NCCL's bootstrap. Plain memory, so
// that it may be shared by threads or, mapped, by processes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "tests/plugin/driver/net.h"

namespace bitrail::test {

constexpr int kMaxBoardRanks = 8, kMaxConnections = 3;

struct Board {
  std::atomic<int> listening{0}, done{0}, failed{0};
  Handle handles[kMaxBoardRanks][kMaxConnections];
  char text[512] = {};  // of the first that failed
};

// The board of ranks that were started one by one: in a file, which the first of them makes.
class BoardFile {
 public:
  explicit BoardFile(const char* path) {
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    // Zeros are an empty board.
    if (file >= 0 && ftruncate(file, sizeof(Board)) == 0) {
      memory_ = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (file >= 0) close(file);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~BoardFile() { munmap(memory_, sizeof(Board)); }
  BoardFile(const BoardFile&) = delete;
  BoardFile& operator=(const BoardFile&) = delete;
  Board* board() { return static_cast<Board*>(memory_); }

 private:
  void* memory_ = MAP_FAILED;
};

// Boards in memory that children by fork share.
class Boards {
 public:
  explicit Boards(int count) : count_(count) {
    memory_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    for (int i = 0; i < count; i++) new (&(*this)[i]) Board;
  }
  ~Boards() { munmap(memory_, bytes()); }
  Boards(const Boards&) = delete;
  Boards& operator=(const Boards&) = delete;
  Board& operator[](int index) { return static_cast<Board*>(memory_)[index]; }

 private:
  size_t bytes() const { return sizeof(Board) * static_cast<size_t>(count_); }
  int count_;
  void* memory_;
};

}  // namespace bitrail::test
