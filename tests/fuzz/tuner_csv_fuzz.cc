// Rows of BITRAIL_TUNER_CSV. What is taken is in range; what is not is named.
#include <cstdlib>
#include <string>

#include "plugin/abi/tuner_types.h"
#include "plugin/tuner/csv.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::plugin::tuner;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  return {
      bytes_of("collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes\n"
               "allreduce,0,32768,tree,ll,4,-1,-1,-1,-1\n# more\nallgather,1K,*,ring,simple,-1\n"),
      bytes_of("reducescatter, 0 , 4G ,pat,simple,64,2,16,1,1\r\n*,0,-1,*,*,8\n\n,,,nvls_tree,,"),
      bytes_of(
          "broadcast,9223372036854775807,8G,collnet_direct,ll128,1,,,,0\nreduce,1,0,ring,ll,-1")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<Row> rows;
  std::vector<std::string> problems;
  read_csv(text, "f", &rows, &problems);
  require(rows.size() <= kMaxRows && problems.size() <= kMaxProblems + 1);
  int line = 0;
  for (const Row& row : rows) {
    require(row.line > line);
    line = row.line;
    require(row.function >= kAny && row.function < bitrail::nccl::kFunctions);
    require(row.algorithm >= kAny && row.algorithm < bitrail::nccl::kAlgorithms);
    require(row.protocol >= kAny && row.protocol < bitrail::nccl::kProtocols);
    require(row.channels >= 0 && row.channels <= bitrail::nccl::kMaxChannels);
    require(row.min_bytes <= row.max_bytes);
    require(row.nodes == kAny || row.nodes > 0);
    require(row.ranks == kAny || row.ranks > 0);
    require(row.pipe_ops == kAny || row.pipe_ops > 0);
    require(row.registered >= kAny && row.registered <= 1);
  }
  for (const std::string& problem : problems) {
    require(problem.starts_with("f:") && problem.size() < 1000);
    for (const char c : problem) require(c >= ' ' && c <= '~');
  }
  return 0;
}
