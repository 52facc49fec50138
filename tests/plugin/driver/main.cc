// The driver as a program: moves random pieces through one table of a plugin file.
//   driver FILE VERSION threads|processes RANKS MIB
//   driver FILE VERSION launched BOARD MIB    one rank, by `mpirun` or tests/lab/lab; BOARD is a
//   file
//                                             that all can write, new for each run
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/plugin/driver/rank.h"

namespace {

int of_launcher(const char* mpi, const char* lab) {
  const char* text = getenv(mpi);
  if (text == nullptr) text = getenv(lab);
  return text == nullptr ? -1 : atoi(text);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace bitrail::test;  // NOLINT(google-build-using-namespace)
  if (argc != 6) {
    (void)fprintf(stderr, "usage: %s FILE VERSION threads|processes|launched RANKS|BOARD MIB\n",
                  argv[0]);
    return 2;
  }
  const int version = atoi(argv[2]);
  RankOptions options;
  const bool launched = strcmp(argv[3], "launched") == 0;
  const int rank = of_launcher("OMPI_COMM_WORLD_RANK", "BITRAIL_RANK");
  options.ranks =
      launched ? of_launcher("OMPI_COMM_WORLD_SIZE", "BITRAIL_WORLD_SIZE") : atoi(argv[4]);
  options.bytes = static_cast<size_t>(atoi(argv[5])) << 20;
  options.limit_ms = 540'000;
  if (version < kOldest || version > kNewest || options.ranks < 1 ||
      options.ranks > kMaxBoardRanks || (launched && (rank < 0 || rank >= options.ranks))) {
    (void)fprintf(stderr, "versions are %d to %d, ranks 1 to %d\n", kOldest, kNewest,
                  kMaxBoardRanks);
    return 2;
  }
  if (launched) {
    BoardFile file(argv[4]);
    const File plugin(argv[1]);
    const std::unique_ptr<Net> net = plugin.net(version);
    const std::string wrong =
        net == nullptr ? "no table" : run_rank(*net, options, rank, file.board());
    (void)fprintf(stderr, "rank %d: %s\n", rank, wrong.empty() ? "ok" : wrong.c_str());
    return wrong.empty() ? 0 : 1;
  }
  Boards boards(1);
  std::string text;
  if (strcmp(argv[3], "processes") == 0) {
    text = run_processes(argv[1], version, options, &boards[0]);
  } else {
    const File file(argv[1]);
    const std::unique_ptr<Net> net = file.net(version);
    if (net == nullptr) return 2;
    text = run_threads(*net, options, &boards[0]);
    for (const std::string& line : take_warnings()) (void)fprintf(stderr, "%s\n", line.c_str());
  }
  (void)fprintf(stderr, "%s\n", text.empty() ? "ok" : text.c_str());
  return text.empty() ? 0 : 1;
}
