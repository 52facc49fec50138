// Structure, messages and order. Values: verify_values.cc.
#include "runtime/schedule/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/schedule/flatten.h"

namespace bitrail::schedule {

namespace {

constexpr size_t kMostProblems = 20;  // a wrong builder makes thousands of the same sort

void report(std::vector<std::string>* problems, std::string text) {
  if (problems->size() < kMostProblems) problems->push_back(std::move(text));
}

bool is(const Operation& operation, Meaning meaning) {
  return operation.kind && operation.kind->meaning == meaning;
}

std::string range_problem(const Schedule& schedule, const Range& range) {
  if (range.buffer >= schedule.buffers.size()) return fmt::format("no buffer {}", range.buffer);
  const Buffer& buffer = schedule.buffers[range.buffer];
  if (range.slot >= buffer.slots)
    return fmt::format("slot {} of {} in {}", range.slot, buffer.slots, buffer.name);
  if (range.chunks == 0 || range.chunk >= range.chunks)
    return fmt::format("chunk {} of {} in {}", range.chunk, range.chunks, buffer.name);
  if (range.pieces == 0 || range.piece >= range.pieces)
    return fmt::format("piece {} of {} in {}", range.piece, range.pieces, buffer.name);
  if (range.span != 1 && (range.span == 0 || range.span > range.chunks - range.chunk ||
                          range.pieces > 1 || buffer.fraction > 1 || buffer.pieces > 1))
    return fmt::format("{} chunks from chunk {} of {} on in {}", range.span, range.chunk,
                       range.chunks, buffer.name);
  if (buffer.fraction > 1 && range.chunks != buffer.fraction)
    return fmt::format("chunks of {} in {}, which holds chunks of {}", range.chunks, buffer.name,
                       buffer.fraction);
  if (buffer.pieces > 1 && range.pieces != buffer.pieces)
    return fmt::format("pieces of {} in {}, which holds pieces of {}", range.pieces, buffer.name,
                       buffer.pieces);
  return {};
}

std::string nested_problem(const Schedule& schedule, const Operation& call);

std::string operation_problem(const Schedule& schedule, OperationId id) {
  const Operation& operation = schedule.operations[id];
  if (!operation.kind) return "has no kind";
  for (OperationId before : operation.after)
    if (before >= id) return fmt::format("comes after {}, not backwards", before);
  for (const auto* ranges : {&operation.reads, &operation.writes})
    for (const Range& range : *ranges)
      if (std::string text = range_problem(schedule, range); !text.empty()) return text;
  const bool sends = is(operation, Meaning::send);
  const bool receives = is(operation, Meaning::recv);
  if (sends || receives) {
    if (operation.peer < 0 || operation.peer >= schedule.world_size ||
        operation.peer == schedule.rank)
      return fmt::format("has peer {}", operation.peer);
    if (operation.reads.size() > (sends ? 1U : 0U) ||
        operation.writes.size() > (receives ? 1U : 0U))
      return "moves more than one range";
  }
  const bool moves = is(operation, Meaning::copy) || is(operation, Meaning::reduce) ||
                     is(operation, Meaning::pack) || is(operation, Meaning::unpack);
  if (moves && (operation.reads.empty() || operation.writes.empty()))
    return "reads or writes nothing";
  if (is(operation, Meaning::call)) return nested_problem(schedule, operation);
  return {};
}

std::string nested_problem(const Schedule& schedule, const Operation& call) {
  if (!call.nested) return "calls nothing";
  if (call.nested_buffers.size() > call.nested->buffers.size()) return "passes too many buffers";
  for (BufferId buffer : call.nested_buffers)
    if (buffer >= schedule.buffers.size()) return fmt::format("passes no buffer {}", buffer);
  for (OperationId id = 0; id < call.nested->operations.size(); id++)
    if (const std::string text = operation_problem(*call.nested, id); !text.empty())
      return fmt::format("calls {} whose operation {} {}", call.nested->name, id, text);
  return {};
}

}  // namespace

std::string describe(const Schedule& schedule, OperationId id) {
  const Operation& operation = schedule.operations[id];
  const char* name = operation.kind ? operation.kind->name : "?";
  if (operation.peer < 0) return fmt::format("rank {} operation {} ({})", schedule.rank, id, name);
  return fmt::format("rank {} operation {} ({} {} {}, message {})", schedule.rank, id, name,
                     is(operation, Meaning::recv) ? "from" : "to", operation.peer,
                     operation.message);
}

void verify_structure(const std::vector<Schedule>& ranks, std::vector<std::string>* problems) {
  for (size_t rank = 0; rank < ranks.size(); rank++) {
    const Schedule& schedule = ranks[rank];
    if (schedule.rank != static_cast<int>(rank) ||
        schedule.world_size != static_cast<int>(ranks.size()))
      report(problems, fmt::format("schedule {} of {} says it is rank {} of {}", rank, ranks.size(),
                                   schedule.rank, schedule.world_size));
    for (OperationId id = 0; id < schedule.operations.size(); id++)
      if (const std::string text = operation_problem(schedule, id); !text.empty())
        report(problems, describe(schedule, id) + ": " + text);
  }
}

void verify_messages(const std::vector<Schedule>& ranks, const Binding& binding,
                     std::vector<std::string>* problems) {
  struct Ends {
    std::vector<std::pair<int, OperationId>> sends, recvs;
  };
  std::map<std::tuple<int, int, uint32_t>, Ends> messages;  // from, to, message
  for (const Schedule& schedule : ranks)
    for (OperationId id = 0; id < schedule.operations.size(); id++) {
      const Operation& o = schedule.operations[id];
      if (is(o, Meaning::send))
        messages[{schedule.rank, o.peer, o.message}].sends.emplace_back(schedule.rank, id);
      if (is(o, Meaning::recv))
        messages[{o.peer, schedule.rank, o.message}].recvs.emplace_back(schedule.rank, id);
    }
  const auto bytes = [&](const std::vector<std::pair<int, OperationId>>& end, bool sends) {
    const Schedule& schedule = ranks[static_cast<size_t>(end[0].first)];
    const Operation& o = schedule.operations[end[0].second];
    const std::vector<Range>& ranges = sends ? o.reads : o.writes;
    return ranges.empty() ? 0 : byte_bounds(schedule, ranges[0], binding).size();
  };
  for (const auto& [key, ends] : messages) {
    const auto& [from, to, message] = key;
    const std::string name = fmt::format("message {} from rank {} to rank {}", message, from, to);
    if (ends.sends.size() != 1 || ends.recvs.size() != 1) {
      report(problems, fmt::format("{} has {} sends and {} recvs", name, ends.sends.size(),
                                   ends.recvs.size()));
      continue;
    }
    if (const uint64_t sent = bytes(ends.sends, true), awaited = bytes(ends.recvs, false);
        sent != awaited)
      report(problems, fmt::format("{}: {} bytes sent, {} bytes awaited", name, sent, awaited));
  }
}

namespace {

// For each operation the set of those before it, as bits.
class Ancestors {
 public:
  explicit Ancestors(const Schedule& schedule)
      : words_((schedule.operations.size() + 63) / 64), bits_(words_ * schedule.operations.size()) {
    for (OperationId id = 0; id < schedule.operations.size(); id++)
      for (OperationId before : schedule.operations[id].after) {
        for (size_t w = 0; w < words_; w++) bits_[id * words_ + w] |= bits_[before * words_ + w];
        bits_[id * words_ + before / 64] |= uint64_t{1} << (before % 64);
      }
  }
  bool ordered(OperationId a, OperationId b) const { return before(a, b) || before(b, a); }

 private:
  bool before(OperationId a, OperationId b) const {
    return (bits_[b * words_ + a / 64] >> (a % 64)) & 1;
  }
  size_t words_;
  std::vector<uint64_t> bits_;
};

struct Access {
  uint64_t begin, end;  // elements of the slot
  OperationId operation;
  bool write;
};

}  // namespace

void verify_order(const Schedule& schedule, const Binding& binding,
                  std::vector<std::string>* problems) {
  std::map<std::pair<BufferId, uint32_t>, std::vector<Access>> places;
  for (OperationId id = 0; id < schedule.operations.size(); id++) {
    const Operation& o = schedule.operations[id];
    for (const auto* ranges : {&o.reads, &o.writes})
      for (const Range& range : *ranges) {
        const Bounds bounds = element_bounds(schedule, range, binding);
        if (!bounds.empty())
          places[{range.buffer, range.slot}].push_back(
              {bounds.begin, bounds.end, id, ranges == &o.writes});
      }
  }
  const Ancestors ancestors(schedule);
  for (auto& [place, accesses] : places) {
    std::sort(accesses.begin(), accesses.end(),
              [](const Access& a, const Access& b) { return a.begin < b.begin; });
    for (size_t i = 0; i < accesses.size(); i++)
      for (size_t j = i + 1; j < accesses.size() && accesses[j].begin < accesses[i].end; j++) {
        const Access& a = accesses[i];
        const Access& b = accesses[j];
        if ((!a.write && !b.write) || a.operation == b.operation) continue;
        if (ancestors.ordered(a.operation, b.operation)) continue;
        report(problems, fmt::format("{} and {} touch the same elements of {} in no order",
                                     describe(schedule, std::min(a.operation, b.operation)),
                                     describe(schedule, std::max(a.operation, b.operation)),
                                     schedule.buffers[place.first].name));
      }
  }
}

std::vector<std::string> verify(const std::vector<Schedule>& ranks, const Binding& binding,
                                const Promise& promise) {
  std::vector<std::string> problems;
  verify_structure(ranks, &problems);
  if (!problems.empty()) return problems;
  std::vector<Schedule> flat;
  flat.reserve(ranks.size());
  for (const Schedule& schedule : ranks) flat.push_back(flatten(schedule));
  verify_structure(flat, &problems);
  if (!problems.empty()) return problems;
  verify_messages(flat, binding, &problems);
  for (const Schedule& schedule : flat) verify_order(schedule, binding, &problems);
  verify_values(flat, binding, &promise, &problems);
  return problems;
}

}  // namespace bitrail::schedule
