#include "tests/optimizers/checkpoint_recorder.h"

#include <algorithm>
#include <cerrno>

#include "tests/optimizers/checkpoint_support.h"

namespace bitrail::test {

using checkpoint::FileOps;
using checkpoint::SystemFiles;
using Kind = Operation::Kind;

// Each function of the table locks, so that the list is in the order of the disk.
struct Calls {
  static Recorder* Of(void* user) { return static_cast<Recorder*>(user); }
  static std::string Name(const char* path) {
    const std::string text = path;
    return text.substr(text.find_last_of('/') + 1);
  }

  static int MakeDir(void* user, const char* path) {
    const std::lock_guard lock(Of(user)->mutex_);
    return Of(user)->Fails() ? -Of(user)->error_ : SystemFiles().make_dir(nullptr, path);
  }
  static int Create(void* user, const char* path) {
    Recorder* recorder = Of(user);
    const std::lock_guard lock(recorder->mutex_);
    if (recorder->Fails()) return -recorder->error_;
    const int fd = SystemFiles().create(nullptr, path);
    if (fd < 0) return fd;
    recorder->files_[fd] = recorder->created_;
    recorder->operations.push_back({Kind::create, recorder->created_++, Name(path)});
    return fd;
  }
  static ssize_t Write(void* user, int fd, const void* data, size_t bytes, off_t at) {
    Recorder* recorder = Of(user);
    const std::lock_guard lock(recorder->mutex_);
    if (recorder->Fails()) return -recorder->error_;
    bytes = std::min(bytes, size_t{1500});  // writes may be short
    const ssize_t written = SystemFiles().write(nullptr, fd, data, bytes, at);
    recorder->operations.push_back({Kind::write, recorder->files_[fd], "", "",
                                    std::string(static_cast<const char*>(data), bytes),
                                    static_cast<size_t>(at)});
    return written;
  }
  static int Sync(void* user, int fd) {
    Recorder* recorder = Of(user);
    const std::lock_guard lock(recorder->mutex_);
    if (recorder->Fails()) return -recorder->error_;
    recorder->operations.push_back({Kind::sync, recorder->files_[fd]});
    return 0;
  }
  static int Close(void* user, int fd) {
    const std::lock_guard lock(Of(user)->mutex_);
    const int closed = SystemFiles().close(nullptr, fd);
    return Of(user)->Fails() ? -Of(user)->error_ : closed;
  }
  static int Rename(void* user, const char* from, const char* to) {
    Recorder* recorder = Of(user);
    const std::lock_guard lock(recorder->mutex_);
    if (recorder->Fails()) return -recorder->error_;
    recorder->operations.push_back({Kind::rename, -1, Name(from), Name(to)});
    return SystemFiles().rename(nullptr, from, to);
  }
  static int Unlink(void* user, const char* path) {
    Recorder* recorder = Of(user);
    const std::lock_guard lock(recorder->mutex_);
    if (recorder->Fails()) return -recorder->error_;
    const int removed = SystemFiles().unlink(nullptr, path);
    if (removed == 0) recorder->operations.push_back({Kind::unlink, -1, Name(path)});
    return removed;
  }
  static int SyncDir(void* user, const char* path) {
    Recorder* recorder = Of(user);
    const std::lock_guard lock(recorder->mutex_);
    if (recorder->Fails()) return -recorder->error_;
    recorder->operations.push_back({Kind::sync_dir, -1, Name(path)});
    return 0;
  }
  static int List(void* user, const char* path, std::vector<std::string>* names) {
    const std::lock_guard lock(Of(user)->mutex_);
    return Of(user)->Fails() ? -Of(user)->error_ : SystemFiles().list(nullptr, path, names);
  }
};

bool Recorder::Fails() { return calls_++ == fail_at_; }

FileOps Recorder::Table() {
  return {.user = this,
          .make_dir = Calls::MakeDir,
          .create = Calls::Create,
          .write = Calls::Write,
          .sync = Calls::Sync,
          .close = Calls::Close,
          .rename = Calls::Rename,
          .unlink = Calls::Unlink,
          .sync_dir = Calls::SyncDir,
          .list = Calls::List};
}

namespace {

bool OnNames(Kind kind) {
  return kind == Kind::create || kind == Kind::rename || kind == Kind::unlink;
}

// First operation after the last fsync of the directory.
size_t AfterSync(const std::vector<Operation>& operations, size_t count) {
  while (count > 0 && operations[count - 1].kind != Kind::sync_dir) count--;
  return count;
}

void ApplyName(const Operation& operation, std::map<std::string, int>* names) {
  if (operation.kind == Kind::create) (*names)[operation.path] = operation.file;
  if (operation.kind == Kind::unlink) names->erase(operation.path);
  if (operation.kind != Kind::rename) return;
  const auto from = names->find(operation.path);
  if (from == names->end()) return;  // the name was lost
  const int file = from->second;
  names->erase(from);
  (*names)[operation.to] = file;
}

void Apply(const Operation& write, std::string* bytes) {
  if (bytes->size() < write.at + write.bytes.size()) bytes->resize(write.at + write.bytes.size());
  std::copy(write.bytes.begin(), write.bytes.end(),
            bytes->begin() + static_cast<std::ptrdiff_t>(write.at));
}

}  // namespace

int UnsyncedNames(const std::vector<Operation>& operations, size_t count) {
  const auto begin = operations.begin();
  return static_cast<int>(
      std::count_if(begin + static_cast<std::ptrdiff_t>(AfterSync(operations, count)),
                    begin + static_cast<std::ptrdiff_t>(count),
                    [](const Operation& operation) { return OnNames(operation.kind); }));
}

void Replay(const std::vector<Operation>& operations, size_t count, const Survival& survival,
            const std::string& path) {
  std::map<std::string, int> names;
  std::map<int, std::string> written, durable;
  const size_t unsynced = AfterSync(operations, count);
  int bit = 0;
  for (size_t i = 0; i < count; i++) {
    const Operation& operation = operations[i];
    if (operation.kind == Kind::write) Apply(operation, &written[operation.file]);
    if (operation.kind == Kind::sync) durable[operation.file] = written[operation.file];
    if (!OnNames(operation.kind)) continue;
    if (i < unsynced || ((survival.names >> bit++) & 1) != 0) ApplyName(operation, &names);
  }
  const auto& contents = survival.bytes ? written : durable;
  for (const auto& [name, file] : names) {
    const auto found = contents.find(file);
    WriteAll(fmt::format("{}/{}", path, name),
             found == contents.end() ? std::string() : found->second);
  }
}

}  // namespace bitrail::test
