#include "optimizers/checkpoint/file_ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace bitrail::checkpoint {
namespace {

int Result(int value) { return value < 0 ? -errno : value; }

int MakeDir(void*, const char* path) { return Result(mkdir(path, 0777)); }

int Create(void*, const char* path) {
  return Result(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
}

ssize_t Write(void*, int fd, const void* data, size_t bytes, off_t at) {
  const ssize_t written = pwrite(fd, data, bytes, at);
  if (written == 0) return -EIO;
  return written < 0 ? -errno : written;
}

int Sync(void*, int fd) { return Result(fsync(fd)); }

int Close(void*, int fd) { return Result(close(fd)); }

int Rename(void*, const char* from, const char* to) { return Result(rename(from, to)); }

int Unlink(void*, const char* path) { return Result(unlink(path)); }

int SyncDir(void*, const char* path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  // Some network file systems know no fsync of a directory: their renames are durable at once.
  const int status = fsync(fd) != 0 && errno != EINVAL ? -errno : 0;
  close(fd);
  return status;
}

int List(void*, const char* path, std::vector<std::string>* names) {
  DIR* dir = opendir(path);
  if (dir == nullptr) return -errno;
  errno = 0;
  while (const dirent* entry = readdir(dir)) names->emplace_back(entry->d_name);
  const int status = -errno;
  closedir(dir);
  return status;
}

}  // namespace

const FileOps& SystemFiles() {
  static constexpr FileOps kSystem = {.make_dir = MakeDir,
                                      .create = Create,
                                      .write = Write,
                                      .sync = Sync,
                                      .close = Close,
                                      .rename = Rename,
                                      .unlink = Unlink,
                                      .sync_dir = SyncDir,
                                      .list = List};
  return kSystem;
}

}  // namespace bitrail::checkpoint
