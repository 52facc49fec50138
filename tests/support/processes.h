// Ranks as processes that a test may kill: by fork with a function, or by fork and exec of a
// program. What they print is kept; whoever is left when the object goes is killed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/common/clock.h"

namespace bitrail::test {

struct Finished {
  bool in_time = false;  // false: still running at the deadline (and then killed)
  int code = -1;         // exit code, or 128 + signal
  std::string output;    // stdout and stderr in the order written
};

class Processes {
 public:
  Processes() = default;
  // n children that run fn(rank) and exit with what it returns. The caller has no other threads:
  // they would be missing in the children, with their locks held.
  Processes(int n, const std::function<int(int)>& fn);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  // One more, by exec; `environment` is set on top of this process's. Its index.
  int start(const std::vector<std::string>& command,
            const std::vector<std::pair<std::string, std::string>>& environment = {});

  pid_t pid(int index) const { return children_[static_cast<size_t>(index)].pid; }
  void signal(int index, int number);
  Finished wait(int index, Deadline deadline);
  std::string output(int index) const;  // so far
  // Until `text` has been printed; false when it was not by the deadline.
  bool wait_for_output(int index, const std::string& text, Deadline deadline) const;

 private:
  struct Child {
    pid_t pid = -1;
    int output = -1;  // a file in memory: a child never blocks on it
    bool ended = false;
    int code = -1;
  };
  Child fork_child(const std::function<int()>& body);
  bool ended(Child* child);

  std::vector<Child> children_;
};

}  // namespace bitrail::test
