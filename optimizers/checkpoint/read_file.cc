#include "optimizers/checkpoint/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "optimizers/checkpoint/checksum.h"
#include "optimizers/checkpoint/json_text.h"
#include "optimizers/checkpoint/write_file.h"

namespace bitrail::checkpoint {
namespace {

struct Descriptor {
  int fd;
  explicit Descriptor(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Status OpenFile(const Descriptor& file, const std::string& path, uint64_t* bytes) {
  if (file.fd < 0) return Check(-errno, "open", path);
  struct stat found = {};
  if (fstat(file.fd, &found) != 0) return Check(-errno, "stat", path);
  if (!S_ISREG(found.st_mode)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} is not a file", path);
  }
  *bytes = static_cast<uint64_t>(found.st_size);
  return {};
}

Status ReadAt(int fd, const std::string& path, uint64_t at, uint64_t bytes, void* out) {
  auto* to = static_cast<char*>(out);
  while (bytes != 0) {
    const ssize_t got = pread(fd, to, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Check(-errno, "read", path);
    if (got == 0) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} is cut short at byte {}", path, at);
    }
    const auto done = static_cast<uint64_t>(got);
    to += done, at += done, bytes -= done;
  }
  return {};
}

// A header as the file's first 8 + N bytes.
Status ParseFront(const std::string& text, const ShardInfo& info, Checkpoint::Shard* shard) {
  if (Checksum(text.data(), text.size()) != info.header) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "{}: the header's checksum does not fit: the file was changed", shard->path);
  }
  const Status status = ParseHeader(std::string_view(text).substr(8), &shard->header);
  if (!status.ok()) return failure(status.code(), "{}: {}", shard->path, status.text());
  shard->data_at = text.size();
  if (shard->data_at + shard->header.data_bytes != info.bytes) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} has {} bytes of data, its header says {}",
                   shard->path, info.bytes - shard->data_at, shard->header.data_bytes);
  }
  return {};
}

Status ReadPiece(int fd, const Checkpoint::Shard& shard, const ShardTensor& tensor, uint64_t index,
                 void* out) {
  const uint64_t at = index * kPiece, bytes = std::min(kPiece, tensor.bytes - at);
  BITRAIL_TRY(ReadAt(fd, shard.path, shard.data_at + tensor.at + at, bytes, out));
  if (Checksum(out, bytes) == tensor.checks[index]) return {};
  return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                 "{}: tensor {}: the checksum of bytes {} to {} does not fit: the file was changed",
                 shard.path, tensor.name, at, at + bytes);
}

}  // namespace

Status ReadShardHeader(const ShardInfo& info, Checkpoint::Shard* shard, bool* missing) {
  const Descriptor file(shard->path);
  *missing = file.fd < 0 && errno == ENOENT;
  uint64_t bytes = 0;
  BITRAIL_TRY(OpenFile(file, shard->path, &bytes));
  if (bytes != info.bytes) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} has {} bytes, it was written with {}",
                   shard->path, bytes, info.bytes);
  }
  uint8_t front[8] = {};
  uint64_t length = 0;
  if (bytes < sizeof front) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} is too short for a shard", shard->path);
  }
  BITRAIL_TRY(ReadAt(file.fd, shard->path, 0, sizeof front, front));
  for (int i = 7; i >= 0; i--) length = length << 8 | front[i];
  if (length > kMaxJsonBytes || length > bytes - sizeof front) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: a header of {} bytes is not possible",
                   shard->path, length);
  }
  std::string text(sizeof front + length, '\0');
  BITRAIL_TRY(ReadAt(file.fd, shard->path, 0, text.size(), text.data()));
  return ParseFront(text, info, shard);
}

Status ReadText(const std::string& path, size_t limit, std::string* text) {
  const Descriptor file(path);
  uint64_t bytes = 0;
  BITRAIL_TRY(OpenFile(file, path, &bytes));
  if (bytes > limit) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} has {} bytes, at most {} are read", path,
                   bytes, limit);
  }
  text->resize(bytes);
  return ReadAt(file.fd, path, 0, bytes, text->data());
}

Status ReadBytes(Checkpoint& checkpoint, const Checkpoint::Shard& shard, const ShardTensor& tensor,
                 uint64_t begin, uint64_t bytes, void* out) {
  if (bytes == 0) return {};
  const Descriptor file(shard.path);
  uint64_t size = 0;
  BITRAIL_TRY(OpenFile(file, shard.path, &size));
  checkpoint.piece.resize(kPiece);
  auto* to = static_cast<uint8_t*>(out);
  const uint64_t end = begin + bytes;
  for (uint64_t index = begin / kPiece; index * kPiece < end; index++) {
    const uint64_t first = index * kPiece, last = std::min(first + kPiece, tensor.bytes);
    const uint64_t from = std::max(begin, first), until = std::min(end, last);
    if (to != nullptr && from == first && until == last) {  // a whole piece: no copy
      BITRAIL_TRY(ReadPiece(file.fd, shard, tensor, index, to + (from - begin)));
      continue;
    }
    if (checkpoint.piece_of != &tensor || checkpoint.piece_index != index) {
      checkpoint.piece_of = nullptr;
      BITRAIL_TRY(ReadPiece(file.fd, shard, tensor, index, checkpoint.piece.data()));
      checkpoint.piece_of = &tensor;
      checkpoint.piece_index = index;
    }
    if (to != nullptr) {
      std::memcpy(to + (from - begin), checkpoint.piece.data() + (from - first), until - from);
    }
  }
  return {};
}

}  // namespace bitrail::checkpoint
