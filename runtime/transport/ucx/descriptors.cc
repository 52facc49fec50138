#include "runtime/transport/ucx/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace bitrail::transport::ucx {

Status require_files(int count) {
  std::vector<int> files;
  int error = 0;
  while (error == 0 && files.size() < static_cast<size_t>(count)) {
    const int file = files.empty() ? open("/dev/null", O_RDONLY | O_CLOEXEC)
                                   : fcntl(files.front(), F_DUPFD_CLOEXEC, 0);
    if (file < 0) {
      error = errno;
    } else {
      files.push_back(file);
    }
  }
  for (const int file : files) close(file);
  if (error == 0) return {};
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return failure(BITRAIL_ERR_SYSTEM,
                 "UCX wants {} files and this process can open only {} more (limit {}): {}; raise "
                 "the limit by `ulimit -n`",
                 count, files.size(), limit.rlim_cur, strerror(error));
}

}  // namespace bitrail::transport::ucx
