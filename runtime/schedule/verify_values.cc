// The verifier's run: all ranks' operations on symbolic values, sends completing only together with
// their recvs.
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "runtime/schedule/values.h"
#include "runtime/schedule/verify.h"

namespace bitrail::schedule {

namespace {

constexpr size_t kMostProblems = 20;

struct RankState {
  std::vector<std::vector<Value>> buffers;           // slots one after the other, in elements
  std::vector<uint32_t> waiting;                     // by operation: edges not yet complete
  std::vector<std::vector<OperationId>> dependents;  // by operation
  std::vector<bool> ready, done;
  std::vector<std::vector<bool>> heard;  // by operation: ranks whose start came before its end
};

class Run {
 public:
  Run(const std::vector<Schedule>& ranks, const Binding& binding, const Promise* promise,
      std::vector<std::string>* problems)
      : ranks_(ranks),
        binding_(binding),
        promise_(promise),
        problems_(*problems),
        signals_(promise && promise->collective == Collective::barrier) {}

  void run();

 private:
  struct Id {
    size_t rank;
    OperationId operation;
  };

  void report(std::string text) {
    if (problems_.size() < kMostProblems) problems_.push_back(std::move(text));
  }
  const Operation& at(Id id) const { return ranks_[id.rank].operations[id.operation]; }
  std::string name(Id id) const { return describe(ranks_[id.rank], id.operation); }

  void set_up(size_t rank);
  void fill(size_t rank, BufferId buffer);
  bool find_partner(Id id, Id* partner) const;
  void complete(Id id);
  void execute(Id id);
  void transfer(Id send, Id recv);
  std::vector<Value> read(Id id, const Range& range);
  void write(Id id, const Range& range, const std::vector<Value>& values);
  void write_all(Id id, const Range& range, Value value);
  void reduce(Id id);
  void hear(Id id);             // what is known at the begin of an operation
  void tell(Id send, Id recv);  // a message brings what its sender knew
  void check_outputs(size_t rank);
  void check_element(size_t rank, BufferId buffer, uint64_t at, Value expected);
  void check_heard(size_t rank);
  Bounds chunk(size_t rank, BufferId buffer, size_t index) const {
    return global_bounds(
        ranks_[rank],
        {buffer, 0, static_cast<uint32_t>(index), static_cast<uint32_t>(ranks_.size()), 0, 1},
        binding_);
  }
  bool has_role(size_t rank, Role role) const {
    const std::vector<Buffer>& buffers = ranks_[rank].buffers;
    return std::any_of(buffers.begin(), buffers.end(),
                       [&](const Buffer& b) { return b.role == role; });
  }

  const std::vector<Schedule>& ranks_;
  const Binding& binding_;
  const Promise* promise_;
  std::vector<std::string>& problems_;
  const bool signals_;  // a barrier: who has heard of whom is the result
  ValueTable table_;
  std::vector<RankState> states_;
  std::map<std::tuple<int, int, uint32_t>, OperationId> sends_, recvs_;  // from, to, message
  std::deque<Id> queue_;
};

// What the caller has put into a buffer before.
void Run::fill(size_t rank, BufferId id) {
  const Buffer& buffer = ranks_[rank].buffers[id];
  std::vector<Value>& values = states_[rank].buffers[id];
  values.assign(slot_elements(buffer, binding_) * buffer.slots, kUnwritten);
  if (buffer.role != Role::scratch && buffer.role != Role::input && buffer.role != Role::output)
    std::fill(values.begin(), values.end(), kNeutral);
  const bool in_place = buffer.role == Role::output && !has_role(rank, Role::input);
  if (buffer.role != Role::input && !in_place) return;
  Bounds owned = {0, buffer.symbol < binding_.counts.size() ? binding_.counts[buffer.symbol] : 0};
  const bool gathers = promise_ && (promise_->collective == Collective::allgather ||
                                    promise_->collective == Collective::onebit_allgather);
  if (buffer.fraction > 1 || (in_place && gathers)) owned = chunk(rank, id, rank);
  const uint64_t origin = buffer.fraction > 1 ? owned.begin : 0;
  for (uint64_t i = owned.begin; i < owned.end; i++)
    values[i - origin] = table_.contribution(static_cast<int>(rank), i);
}

void Run::set_up(size_t rank) {
  const Schedule& schedule = ranks_[rank];
  RankState& state = states_[rank];
  const size_t n = schedule.operations.size();
  state.buffers.resize(schedule.buffers.size());
  for (BufferId id = 0; id < schedule.buffers.size(); id++) fill(rank, id);
  state.waiting.resize(n);
  state.dependents.resize(n);
  state.ready.resize(n);
  state.done.resize(n);
  state.heard.resize(n);
  for (OperationId id = 0; id < n; id++) {
    const Operation& o = schedule.operations[id];
    state.waiting[id] = static_cast<uint32_t>(o.after.size());
    for (OperationId before : o.after) state.dependents[before].push_back(id);
    if (o.kind->meaning == Meaning::send) sends_[{schedule.rank, o.peer, o.message}] = id;
    if (o.kind->meaning == Meaning::recv) recvs_[{o.peer, schedule.rank, o.message}] = id;
    if (o.after.empty()) queue_.push_back({rank, id});
  }
}

bool Run::find_partner(Id id, Id* partner) const {
  const Operation& o = at(id);
  const auto rank = static_cast<int>(id.rank);
  const bool sends = o.kind->meaning == Meaning::send;
  const auto& ends = sends ? recvs_ : sends_;
  const auto found =
      sends ? ends.find({rank, o.peer, o.message}) : ends.find({o.peer, rank, o.message});
  if (found == ends.end()) return false;
  *partner = {static_cast<size_t>(o.peer), found->second};
  return true;
}

void Run::complete(Id id) {
  RankState& state = states_[id.rank];
  state.done[id.operation] = true;
  for (OperationId next : state.dependents[id.operation])
    if (--state.waiting[next] == 0) queue_.push_back({id.rank, next});
}

std::vector<Value> Run::read(Id id, const Range& range) {
  const Schedule& schedule = ranks_[id.rank];
  const Bounds bounds = element_bounds(schedule, range, binding_);
  const uint64_t slot = slot_elements(schedule.buffers[range.buffer], binding_) * range.slot;
  const std::vector<Value>& values = states_[id.rank].buffers[range.buffer];
  std::vector<Value> result;
  for (uint64_t i = bounds.begin; i < bounds.end; i++) result.push_back(values[slot + i]);
  if (std::find(result.begin(), result.end(), kUnwritten) != result.end())
    report(fmt::format("{} reads what nobody wrote in {}", name(id),
                       schedule.buffers[range.buffer].name));
  return result;
}

void Run::write(Id id, const Range& range, const std::vector<Value>& from) {
  const Schedule& schedule = ranks_[id.rank];
  const Bounds bounds = element_bounds(schedule, range, binding_);
  if (from.size() != bounds.size())
    report(fmt::format("{}: {} elements for a range of {} in {}", name(id), from.size(),
                       bounds.size(), schedule.buffers[range.buffer].name));
  const uint64_t slot = slot_elements(schedule.buffers[range.buffer], binding_) * range.slot;
  std::vector<Value>& values = states_[id.rank].buffers[range.buffer];
  for (uint64_t i = 0; i < std::min<uint64_t>(bounds.size(), from.size()); i++)
    values[slot + bounds.begin + i] = from[i];
}

void Run::write_all(Id id, const Range& range, Value value) {
  const Bounds bounds = element_bounds(ranks_[id.rank], range, binding_);
  write(id, range, std::vector<Value>(bounds.size(), value));
}

void Run::reduce(Id id) {
  const Operation& o = at(id);
  const std::vector<Buffer>& buffers = ranks_[id.rank].buffers;
  const Symbol symbol = buffers[o.writes[0].buffer].symbol;
  std::vector<Value> total;
  bool first = true;
  for (const Range& range : o.reads) {
    const std::vector<Value> values = read(id, range);
    if (buffers[range.buffer].symbol != symbol) continue;  // scales
    if (first) {
      total = values;
    } else if (values.size() != total.size()) {
      report(fmt::format("{} sums ranges of {} and {} elements", name(id), total.size(),
                         values.size()));
    } else {
      for (size_t i = 0; i < total.size(); i++) total[i] = table_.sum(total[i], values[i]);
    }
    first = false;
  }
  write(id, o.writes[0], total);
}

void Run::execute(Id id) {
  const Operation& o = at(id);
  const std::vector<Buffer>& buffers = ranks_[id.rank].buffers;
  switch (o.kind->meaning) {
    case Meaning::copy:
    case Meaning::unpack:
    case Meaning::pack: {
      const std::vector<Value> values = read(id, o.reads[0]);
      for (size_t i = 1; i < o.reads.size(); i++) read(id, o.reads[i]);
      write(id, o.writes[0], values);
      for (size_t i = 1; i < o.writes.size(); i++) {
        const Buffer& buffer = buffers[o.writes[i].buffer];
        if (buffer.role != Role::worker_error && buffer.role != Role::server_error &&
            buffer.symbol == kElements)
          report(fmt::format("{} writes more than its result and an error", name(id)));
        write_all(id, o.writes[i], kNeutral);
      }
      break;
    }
    case Meaning::reduce:
      reduce(id);
      break;
    case Meaning::none:
    case Meaning::opaque: {
      for (const Range& range : o.reads) read(id, range);
      const Value value = o.kind->meaning == Meaning::opaque ? kOpaque : kNeutral;
      for (const Range& range : o.writes) write_all(id, range, value);
      break;
    }
    case Meaning::send:
    case Meaning::recv:
    case Meaning::call:
      break;  // transfer; flattened before
  }
}

void Run::transfer(Id send, Id recv) {
  std::vector<Value> values;
  if (!at(send).reads.empty()) values = read(send, at(send).reads[0]);
  if (!at(recv).writes.empty()) write(recv, at(recv).writes[0], values);
}

void Run::hear(Id id) {
  RankState& state = states_[id.rank];
  std::vector<bool>& heard = state.heard[id.operation];
  heard.assign(ranks_.size(), false);
  heard[id.rank] = true;
  for (OperationId before : at(id).after)
    for (size_t r = 0; r < heard.size(); r++)
      if (state.heard[before][r]) heard[r] = true;
}

void Run::tell(Id send, Id recv) {
  const std::vector<bool>& told = states_[send.rank].heard[send.operation];
  for (size_t r = 0; r < told.size(); r++)
    if (told[r]) states_[recv.rank].heard[recv.operation][r] = true;
}

void Run::run() {
  states_.resize(ranks_.size());
  for (size_t rank = 0; rank < ranks_.size(); rank++) set_up(rank);
  while (!queue_.empty()) {
    const Id id = queue_.front();
    queue_.pop_front();
    RankState& state = states_[id.rank];
    state.ready[id.operation] = true;
    if (signals_) hear(id);
    const Meaning meaning = at(id).kind->meaning;
    if (meaning != Meaning::send && meaning != Meaning::recv) {
      execute(id);
      complete(id);
      continue;
    }
    Id partner{};
    if (!find_partner(id, &partner)) continue;
    RankState& other = states_[partner.rank];
    if (!other.ready[partner.operation] || other.done[partner.operation]) continue;
    const Id send = meaning == Meaning::send ? id : partner;
    const Id recv = meaning == Meaning::send ? partner : id;
    transfer(send, recv);
    if (signals_) tell(send, recv);
    complete(send);
    complete(recv);
  }
  for (size_t rank = 0; rank < ranks_.size(); rank++) {
    const std::vector<bool>& done = states_[rank].done;
    const auto stuck = std::find(done.begin(), done.end(), false);
    if (stuck == done.end()) continue;
    report(fmt::format("{} never completes",
                       name({rank, static_cast<OperationId>(stuck - done.begin())})));
  }
  if (!promise_ || !problems_.empty()) return;
  for (size_t rank = 0; rank < ranks_.size(); rank++) {
    if (promise_->collective == Collective::barrier) {
      check_heard(rank);
    } else {
      check_outputs(rank);
    }
  }
}

void Run::check_heard(size_t rank) {
  std::vector<bool> heard(ranks_.size());
  heard[rank] = true;
  for (const std::vector<bool>& one : states_[rank].heard)
    for (size_t r = 0; r < one.size(); r++)
      if (one[r]) heard[r] = true;
  for (size_t r = 0; r < heard.size(); r++)
    if (!heard[r]) report(fmt::format("rank {} leaves without having heard of rank {}", rank, r));
}

void Run::check_element(size_t rank, BufferId buffer, uint64_t at, Value expected) {
  const Value value = states_[rank].buffers[buffer][at];
  if (value != expected && value != kOpaque)
    report(fmt::format("rank {}: {} [{}] holds {} instead of {}", rank,
                       ranks_[rank].buffers[buffer].name, at, table_.text(value),
                       table_.text(expected)));
}

void Run::check_outputs(size_t rank) {
  const std::vector<Buffer>& buffers = ranks_[rank].buffers;
  // Reduce-scatter in place leaves the result in the input.
  const Role role = has_role(rank, Role::output) ? Role::output : Role::input;
  const auto place =
      std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.role == role; });
  if (place == buffers.end()) {
    report(fmt::format("rank {} has no output", rank));
    return;
  }
  const auto id = static_cast<BufferId>(place - buffers.begin());
  const auto world = static_cast<int>(ranks_.size());
  const Bounds own = chunk(rank, id, rank);
  for (size_t from = 0; from < ranks_.size(); from++) {
    const Bounds bounds = chunk(rank, id, from);
    for (uint64_t i = bounds.begin; i < bounds.end; i++) {
      switch (promise_->collective) {
        case Collective::allreduce:
        case Collective::onebit_allreduce:
          check_element(rank, id, i, table_.everyone(world, i));
          break;
        case Collective::reduce_scatter:
        case Collective::onebit_reduce_scatter:
          if (from == rank)
            check_element(rank, id, i - (place->fraction > 1 ? own.begin : 0),
                          table_.everyone(world, i));
          break;
        case Collective::allgather:
        case Collective::onebit_allgather:
          check_element(rank, id, i, table_.contribution(static_cast<int>(from), i));
          break;
        case Collective::broadcast:
          check_element(rank, id, i, table_.contribution(promise_->root, i));
          break;
        case Collective::alltoall:
          check_element(
              rank, id, i,
              table_.contribution(static_cast<int>(from), own.begin + (i - bounds.begin)));
          break;
        case Collective::barrier:
          break;
      }
    }
  }
}

}  // namespace

void verify_values(const std::vector<Schedule>& ranks, const Binding& binding,
                   const Promise* promise, std::vector<std::string>* problems) {
  Run(ranks, binding, promise, problems).run();
}

}  // namespace bitrail::schedule
