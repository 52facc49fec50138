#include "runtime/planner/choose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/config/nearest.h"
#include "runtime/trace/log.h"

namespace bitrail::planner {

namespace {

// All names, the nearest first: "ring, direct".
std::string by_nearness(std::string_view wrong, std::vector<std::string> names) {
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return config::edit_distance(wrong, a) < config::edit_distance(wrong, b);
  });
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

Status unknown_collective(std::string_view name) {
  std::vector<std::string> names;
  names.reserve(schedule::kCollectives);
  for (int i = 0; i < schedule::kCollectives; i++)
    names.emplace_back(collective_name(static_cast<Collective>(i)));
  return failure(BITRAIL_ERR_CONFIG,
                 "BITRAIL_ALGO: no collective is called \"{}\"; there are, nearest first: {}", name,
                 by_nearness(name, std::move(names)));
}

Status unknown_algorithm(Collective collective, std::string_view name) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : algorithms_of(collective)) names.push_back(algorithm->name);
  return failure(
      BITRAIL_ERR_CONFIG,
      "BITRAIL_ALGO: {} has no algorithm \"{}\"; there are, nearest first: {} (BITRAIL_ALGO_PATH "
      "adds more)",
      collective_name(collective), name, by_nearness(name, std::move(names)));
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

struct Named {
  Collective collective = Collective::allreduce;
  const Algorithm* algorithm = nullptr;
};

// The whole list is read even when one entry is wanted: a typing error shows at the first call.
Status parse(std::string_view text, std::vector<Named>* named) {
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (entry.empty()) continue;
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos)
      return failure(BITRAIL_ERR_CONFIG,
                     "BITRAIL_ALGO: \"{}\" is not COLLECTIVE:ALGORITHM (for example "
                     "allreduce:ring)",
                     entry);
    const std::string_view name = trim(entry.substr(0, colon));
    const std::string_view algorithm = trim(entry.substr(colon + 1));
    Named one;
    if (!schedule::parse_collective(name, &one.collective)) return unknown_collective(name);
    one.algorithm = find(one.collective, algorithm);
    if (!one.algorithm) return unknown_algorithm(one.collective, algorithm);
    named->push_back(one);
  }
  return {};
}

bool is_onebit(Collective collective) {
  return collective == Collective::onebit_allreduce ||
         collective == Collective::onebit_reduce_scatter ||
         collective == Collective::onebit_allgather;
}

uint32_t count_pieces(const Request& request, int64_t piece) {
  const bool cut_in_chunks = request.collective != Collective::broadcast;
  const auto chunks = static_cast<uint64_t>(cut_in_chunks ? request.world_size : 1);
  const uint64_t elements = (request.count + chunks - 1) / chunks;
  uint64_t length = kOnebitPieceElements;
  if (piece > 0) {
    length = static_cast<uint64_t>(piece);
  } else if (!is_onebit(request.collective)) {
    const uint64_t width = request.count ? std::max<uint64_t>(request.bytes / request.count, 1) : 1;
    length = kPieceBytes / width;
  }
  const uint64_t pieces = (elements + length - 1) / length;
  return static_cast<uint32_t>(std::clamp<uint64_t>(pieces, 1, kMaxPieces));
}

// Without BITRAIL_ALGO.
const Algorithm* by_size(const Request& request, std::string* why) {
  if (request.collective == Collective::allreduce) {
    if (request.bytes <= kOneShotBytes && request.world_size > 2 &&
        request.world_size <= kOneShotRanks) {
      *why = fmt::format("at most {} bytes on at most {} ranks", kOneShotBytes, kOneShotRanks);
      return find(Collective::allreduce, "one_shot");
    }
    const Algorithm* doubling = find(Collective::allreduce, "doubling");
    if (request.bytes <= kDoublingBytes && doubling->applies(request)) {
      *why = fmt::format("at most {} bytes", kDoublingBytes);
      return doubling;
    }
    *why = request.deterministic ? "deterministic: sums in rank order"
                                 : fmt::format("more than {} bytes", kDoublingBytes);
    return find(Collective::allreduce, "direct");
  }
  *why = "the first that applies";
  for (const Algorithm* algorithm : algorithms_of(request.collective))
    if (algorithm->applies(request)) return algorithm;
  return nullptr;
}

}  // namespace

Status check_algo(const std::string& algo) {
  std::vector<Named> named;
  return parse(algo, &named);
}

Status choose(const Request& request, const std::string& algo, int64_t piece, Choice* choice) {
  std::vector<Named> named;
  BITRAIL_TRY(parse(algo, &named));
  *choice = {nullptr, request, {}};
  std::string why;
  std::string passed_over;
  for (const Named& one : named) {
    if (one.collective != request.collective) continue;
    if (one.algorithm->applies(request)) {
      choice->algorithm = one.algorithm;
      why = "BITRAIL_ALGO";
    } else {
      passed_over = fmt::format("; BITRAIL_ALGO's {} does not apply here", one.algorithm->name);
    }
  }
  if (!choice->algorithm) choice->algorithm = by_size(request, &why);
  if (!choice->algorithm)
    return failure(BITRAIL_ERR_UNSUPPORTED, "no algorithm does {}{} with {} ranks",
                   collective_name(request.collective), request.in_place ? " in place" : "",
                   request.world_size);
  if (!choice->request.pieces) choice->request.pieces = count_pieces(request, piece);
  choice->reason = fmt::format("{} of {} bytes on {} ranks: {}, {} piece{} a chunk ({}{})",
                               collective_name(request.collective), request.bytes,
                               request.world_size, choice->algorithm->name, choice->request.pieces,
                               choice->request.pieces == 1 ? "" : "s", why, passed_over);
  log::info("{}", choice->reason);
  return {};
}

}  // namespace bitrail::planner
