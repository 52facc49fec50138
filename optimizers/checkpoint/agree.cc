#include "optimizers/checkpoint/agree.h"

#include <algorithm>
#include <cstring>

namespace bitrail::checkpoint {
namespace {

struct Report {
  Words words;
  int32_t code = BITRAIL_OK;
  char text[1012] = {};  // cut when longer
};

}  // namespace

Status Agree(bitrail_comm_t comm, const Status& own, const Words& words, std::vector<Words>* all,
             bool* reached) {
  if (reached != nullptr) *reached = true;
  if (comm == nullptr) {
    all->assign(1, words);
    return own;
  }
  Report mine = {.words = words, .code = own.code()};
  const std::string text = own.text();
  std::memcpy(mine.text, text.data(), std::min(text.size(), sizeof mine.text - 1));
  std::vector<Report> reports(static_cast<size_t>(bitrail_comm_world_size(comm)));
  const bitrail_status_t code =
      bitrail_allgather(comm, &mine, reports.data(), sizeof mine, BITRAIL_UINT8, nullptr);
  if (code != BITRAIL_OK) {
    if (reached != nullptr) *reached = false;
    if (!own.ok()) return own;
    return failure(code, "checkpoint: the ranks could not agree: {}", bitrail_last_error());
  }
  all->clear();
  for (const Report& report : reports) all->push_back(report.words);
  for (size_t rank = 0; rank < reports.size(); rank++) {
    const Report& report = reports[rank];
    if (report.code == BITRAIL_OK) continue;
    return failure(static_cast<bitrail_status_t>(report.code), "rank {}: {}", rank, report.text);
  }
  return {};
}

}  // namespace bitrail::checkpoint
