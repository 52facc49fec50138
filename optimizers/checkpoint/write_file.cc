#include "optimizers/checkpoint/write_file.h"

#include <cerrno>
#include <functional>
#include <system_error>

#include "optimizers/checkpoint/checksum.h"

namespace bitrail::checkpoint {
namespace {

struct File {
  const FileOps& files;
  const std::string& path;
  int fd = -1;
};

Status Write(const File& file, const char* data, uint64_t bytes, uint64_t at) {
  while (bytes != 0) {
    const ssize_t written =
        file.files.write(file.files.user, file.fd, data, bytes, static_cast<off_t>(at));
    if (written == -EINTR) continue;
    BITRAIL_TRY(Check(written, "write", file.path));
    const auto done = static_cast<uint64_t>(written);
    data += done, at += done, bytes -= done;
  }
  return {};
}

// Creates, fills, syncs and closes; removes what failed.
Status Produce(const FileOps& files, const std::string& path,
               const std::function<Status(const File&)>& fill) {
  File file{files, path, files.create(files.user, path.c_str())};
  BITRAIL_TRY(Check(file.fd, "create", path));
  Status status = fill(file);
  if (status.ok()) status = Check(files.sync(files.user, file.fd), "fsync", path);
  const int closed = files.close(files.user, file.fd);
  if (status.ok()) status = Check(closed, "close", path);
  if (!status.ok()) (void)files.unlink(files.user, path.c_str());
  return status;
}

// Each piece is read from memory once: the checksum leaves it in the cache for the write.
Status WriteTensor(const File& file, uint64_t at, const char* data, ShardTensor* tensor) {
  for (uint64_t i = 0; i < tensor->checks.size(); i++) {
    const uint64_t offset = i * kPiece;
    const uint64_t bytes = std::min(kPiece, tensor->bytes - offset);
    tensor->checks[i] = Checksum(data + offset, bytes);
    BITRAIL_TRY(Write(file, data + offset, bytes, at + offset));
  }
  return {};
}

}  // namespace

Status Check(int64_t error, const char* operation, const std::string& path) {
  if (error >= 0) return {};
  return failure(BITRAIL_ERR_SYSTEM, "{} {}: {}", operation, path,
                 std::generic_category().message(static_cast<int>(-error)));
}

Status MakeDirs(const FileOps& files, const std::string& path) {
  int made = files.make_dir(files.user, path.c_str());
  if (made == -EEXIST) return {};
  const size_t slash = path.find_last_of('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
  if (made == -ENOENT && slash != std::string::npos && slash != 0) {
    BITRAIL_TRY(MakeDirs(files, parent));
    made = files.make_dir(files.user, path.c_str());
  }
  if (made == -EEXIST) return {};
  BITRAIL_TRY(Check(made, "mkdir", path));
  const std::string& above = slash == 0 ? "/" : parent;
  return Check(files.sync_dir(files.user, above.c_str()), "fsync", above);
}

Status WriteShard(const FileOps& files, const std::string& path, ShardHeader* header,
                  const std::vector<const void*>& data, uint64_t* checksum) {
  return Produce(files, path, [&](const File& file) -> Status {
    std::string text;
    BITRAIL_TRY(BuildHeader(*header, &text));  // for its length: the checks come with the data
    for (size_t i = 0; i < data.size(); i++) {
      ShardTensor& tensor = header->tensors[i];
      BITRAIL_TRY(
          WriteTensor(file, text.size() + tensor.at, static_cast<const char*>(data[i]), &tensor));
    }
    BITRAIL_TRY(BuildHeader(*header, &text));
    *checksum = Checksum(text.data(), text.size());
    return Write(file, text.data(), text.size(), 0);
  });
}

Status WriteText(const FileOps& files, const std::string& path, std::string_view text) {
  return Produce(files, path,
                 [&](const File& file) { return Write(file, text.data(), text.size(), 0); });
}

}  // namespace bitrail::checkpoint
