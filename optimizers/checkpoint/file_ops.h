// The file operations of Save, as a table: tests record them, replay crashes and inject failures.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bitrail::checkpoint {

// Each returns -errno on failure. Paths are as given to Save, with the file's name appended.
struct FileOps {
  void* user = nullptr;  // first argument of every call
  // Makes a directory; -EEXIST where there is one.
  int (*make_dir)(void* user, const char* path) = nullptr;
  // Makes or empties a file and opens it for writing. A descriptor >= 0.
  int (*create)(void* user, const char* path) = nullptr;
  // May write less than `bytes`, never 0.
  ssize_t (*write)(void* user, int fd, const void* data, size_t bytes, off_t at) = nullptr;
  int (*sync)(void* user, int fd) = nullptr;
  int (*close)(void* user, int fd) = nullptr;
  int (*rename)(void* user, const char* from, const char* to) = nullptr;
  int (*unlink)(void* user, const char* path) = nullptr;
  int (*sync_dir)(void* user, const char* path) = nullptr;
  // Adds the names in a directory to *names.
  int (*list)(void* user, const char* path, std::vector<std::string>* names) = nullptr;
};

// The system's.
const FileOps& SystemFiles();

}  // namespace bitrail::checkpoint
