// What users write about InfiniBand ports: device lists and address ranges.
#include <cstdlib>
#include <string>

#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/select.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail;                    // NOLINT(google-build-using-namespace)
using namespace bitrail::transport::verbs;  // NOLINT

void require(bool condition) {
  if (!condition) std::abort();
}

void fuzz_list(const std::string& text) {
  HcaList list;
  if (!parse_hca_list(text, &list).ok()) return;
  require(text.empty() == list.names.empty());
  // What was understood is what is written again.
  HcaList again;
  require(parse_hca_list(hca_list_text(list), &again).ok());
  require(hca_list_text(again) == hca_list_text(list));
  require(again.names.size() == list.names.size());
  for (const HcaName& name : list.names) {
    require(name.port >= 0 && name.port < 255 && !name.name.empty());
    const int port = name.port == 0 ? 1 : name.port;
    require(selects(list, name.name, port) != list.exclude);
    if (selects(list, name.name, port)) require(may_select(list, name.name));
    require(!list.exact || list.exclude || !selects(list, name.name + "~", port));
  }
}

void fuzz_range(const std::string& text) {
  AddressRange range;
  if (!parse_range(text, &range).ok()) return;
  require(range.bits >= 0 && range.bits <= 128);
  ibv_gid gid{};
  std::copy(std::begin(range.bytes), std::end(range.bytes), gid.raw);
  require(contains(range, gid));
  require(gid_text(gid).size() < 64);
  if (range.bits == 0) return;
  gid.raw[(range.bits - 1) / 8] ^= static_cast<uint8_t>(0x80 >> (range.bits - 1) % 8);
  require(!contains(range, gid));
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::vector<std::vector<uint8_t>> seeds;
  for (const std::string text : {"mlx5_0:1,mlx5_3", "=mlx5_1", "^=mlx5_10:2,rxe0", "^bnxt_re",
                                 "10.0.0.0/8", "2001:db8::/32", "::ffff:1.2.3.4/127"}) {
    seeds.emplace_back(text.begin(), text.end());
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(data, data + size);
  fuzz_list(text);
  fuzz_range(text);
  return 0;
}
