// One of two ranks: rank 0 sends COUNT messages of BYTES to rank 1, which prints how many came a
// second.
//   pipe DIRECTORY RANK BYTES COUNT WINDOW plugin FILE
//   pipe DIRECTORY RANK BYTES COUNT WINDOW tcp ADDRESS
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <thread>

#include <fmt/core.h>

#include "runtime/common/clock.h"
#include "tools/bench/pipes/pipe.h"

namespace bitrail::bench {
namespace {

constexpr size_t kWarmUp = 100;

struct Free {
  void operator()(void* pointer) const { free(pointer); }
};

void measure(Pipe* pipe, const Setting& setting, size_t count) {
  const std::unique_ptr<void, Free> data(aligned_alloc(4096, (setting.bytes + 4095) / 4096 * 4096));
  if (data == nullptr) throw std::bad_alloc();
  memset(data.get(), 0x3c, setting.bytes);
  for (const bool counts : {false, true}) {
    const size_t messages = counts ? count : std::min(kWarmUp, count);
    if (setting.rank == 1) pipe->prepare(data.get(), messages);
    pipe->swap();
    const int64_t begin = now_ns();
    int64_t end = 0;
    if (setting.rank == 0) {
      pipe->send(data.get(), messages);
    } else {
      end = pipe->receive(data.get(), messages);
    }
    if (setting.rank == 1 && counts) {
      (void)printf("%.3f\n", static_cast<double>(count) * 1e9 / static_cast<double>(end - begin));
    }
  }
  pipe->swap();
}

std::string file_of(const Setting& setting, const char* what, int rank) {
  return fmt::format("{}/{}.{}", setting.directory, what, rank);
}

}  // namespace

void die(const std::string& text) {
  (void)fprintf(stderr, "pipe: %s\n", text.c_str());
  _exit(1);  // connections may be half made
}

void publish(const Setting& setting, const char* what, const std::string& text) {
  const std::string name = file_of(setting, what, setting.rank);
  std::ofstream(name + ".new", std::ios::binary) << text;
  must(rename((name + ".new").c_str(), name.c_str()) == 0, "cannot write into the directory");
}

std::string await(const Setting& setting, const char* what, int rank) {
  const Deadline deadline = Deadline::in_ms(60'000);
  while (!deadline.passed()) {
    std::ifstream file(file_of(setting, what, rank), std::ios::binary);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  die(fmt::format("rank {} does not come", rank));
}

}  // namespace bitrail::bench

int main(int argc, char** argv) {
  using namespace bitrail::bench;  // NOLINT(google-build-using-namespace)
  if (argc != 8) {
    (void)fprintf(stderr, "usage: %s DIRECTORY RANK BYTES COUNT WINDOW plugin|tcp FILE|ADDRESS\n",
                  argv[0]);
    return 2;
  }
  const bool tcp = strcmp(argv[6], "tcp") == 0;
  const Setting setting{.directory = argv[1],
                        .rank = atoi(argv[2]),
                        .address = tcp ? argv[7] : "",
                        .file = tcp ? "" : argv[7],
                        .bytes = strtoull(argv[3], nullptr, 10),
                        .window = strtoull(argv[5], nullptr, 10)};
  const size_t count = strtoull(argv[4], nullptr, 10);
  must((setting.rank == 0 || setting.rank == 1) && setting.bytes > 0 && count > 0 &&
           setting.window > 0,
       "ranks are 0 and 1, numbers above 0");
  measure((tcp ? open_tcp(setting) : open_table(setting)).get(), setting, count);
  return 0;
}
