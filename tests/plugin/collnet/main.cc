// The CollNet driver as a program, with ranks as processes.
//   driver FILE VERSION exact|onebit RANKS
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/plugin/collnet/drive.h"

int main(int argc, char** argv) {
  using namespace bitrail::test;  // NOLINT(google-build-using-namespace)
  if (argc != 5) {
    (void)fprintf(stderr, "usage: %s FILE VERSION exact|onebit RANKS\n", argv[0]);
    return 2;
  }
  const int version = atoi(argv[2]);
  CollOptions options;
  options.onebit = strcmp(argv[3], "onebit") == 0;
  options.ranks = atoi(argv[4]);
  if (version < kOldestColl || version > kNewestColl || options.ranks < 1 ||
      options.ranks > kMaxBoardRanks) {
    (void)fprintf(stderr, "versions are %d to %d, ranks 1 to %d\n", kOldestColl, kNewestColl,
                  kMaxBoardRanks);
    return 2;
  }
  setenv("BITRAIL_COLLNET", argv[3], 1);
  Boards boards(1);
  const std::string text = drive_processes(argv[1], version, options, &boards[0]);
  (void)fprintf(stderr, "%s\n", text.empty() ? "ok" : text.c_str());
  return text.empty() ? 0 : 1;
}
