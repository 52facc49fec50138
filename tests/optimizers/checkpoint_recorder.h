// A disk that can crash: a FileOps table that does what it is asked, keeps a list of it, and may
// fail at a chosen operation. Replay builds a directory as a crash after any operation leaves it.
//
// What fsync of a file promises: its bytes. What fsync of a directory promises: the names in it at
// that time. Whatever is newer may be there or not: a file's unsynced bytes are then missing, a
// name shows what it showed before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "optimizers/checkpoint/file_ops.h"

namespace bitrail::test {

struct Operation {
  enum class Kind : uint8_t { create, write, sync, rename, unlink, sync_dir };
  Kind kind;
  int file = -1;         // of create, write and sync: which created file
  std::string path, to;  // names without the directory; `to`: of a rename
  std::string bytes;     // of a write
  size_t at = 0;
};

class Recorder {
 public:
  // Borrowed by the table that Table() returns. All ranks of a test share it.
  checkpoint::FileOps Table();

  // Fails the n-th call of the table from now on (0: the next) with `error`, once.
  void FailAt(int n, int error) { fail_at_ = n, error_ = error, calls_ = 0; }
  int calls() const { return calls_; }

  std::vector<Operation> operations;

 private:
  friend struct Calls;
  bool Fails();

  std::mutex mutex_;
  std::map<int, int> files_;  // descriptor -> created file
  int created_ = 0, calls_ = 0, fail_at_ = -1, error_ = 0;
};

// How much of what was not synced a crash keeps.
struct Survival {
  bool bytes = false;  // of written files
  uint64_t names = 0;  // bit i: of the i-th operation on names since the directory's last fsync
};

// Number of operations on names, in the first `count` operations, that no fsync covers.
int UnsyncedNames(const std::vector<Operation>& operations, size_t count);

// Fills the empty directory `path` with what a crash after `count` operations leaves of a directory
// that was empty at first.
void Replay(const std::vector<Operation>& operations, size_t count, const Survival& survival,
            const std::string& path);

}  // namespace bitrail::test
