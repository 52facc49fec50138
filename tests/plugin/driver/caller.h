// Calls that have to succeed within their time, and what happens when they do not.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/core.h>

#include "plugin/abi/types.h"
#include "runtime/common/clock.h"

namespace bitrail::test {

// A broken contract, told to whoever runs the rank.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool condition, const char* text) {
  if (!condition) throw Broken(text);
}

// An error code of a call, where none is expected.
class Refused : public Broken {
 public:
  using Broken::Broken;
};

struct Caller {
  Deadline deadline;
  int64_t call_ns;

  template <typename Call>
  void operator()(const char* name, Call call) const {
    const int64_t begin = now_ns();
    const nccl::Result result = call();
    if (now_ns() - begin > call_ns) throw Broken(std::string(name) + " blocks");
    if (result != nccl::kSuccess) {
      throw Refused(fmt::format("{} gives code {}", name, static_cast<int>(result)));
    }
    if (deadline.passed()) throw Broken(std::string(name) + ": no end within the limit");
  }
};

}  // namespace bitrail::test
