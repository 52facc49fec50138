// Which ports BITRAIL_IB_HCA chooses, in NCCL_IB_HCA's syntax: names separated by commas, each a
// prefix ("mlx5" is mlx5_0, mlx5_1, ...) and maybe with ":port". "=" in front of the list asks for
// whole names, so that "=mlx5_1" leaves mlx5_10 alone; "^" in front excludes instead; "^=" does
// both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::transport::verbs {

struct HcaName {
  std::string name;
  int port = 0;  // 0: any
};

struct HcaList {
  bool exclude = false;
  bool exact = false;
  std::vector<HcaName> names;  // empty: every port
};

// BITRAIL_ERR_CONFIG says which part is not understood.
Status parse_hca_list(std::string_view text, HcaList* list);
bool selects(const HcaList& list, std::string_view device, int port);
// Whether some port of the device may be selected.
bool may_select(const HcaList& list, std::string_view device);
// The same list as text.
std::string hca_list_text(const HcaList& list);

}  // namespace bitrail::transport::verbs
