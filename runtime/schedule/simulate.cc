#include "runtime/schedule/simulate.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace bitrail::schedule {

namespace {

struct Lane {
  std::set<OperationId> ready;
  bool busy = false;
};

struct RankState {
  std::vector<uint32_t> waiting;  // by operation: edges not yet complete
  std::vector<std::vector<OperationId>> dependents;
  std::vector<bool> posted, arrived;  // recvs
  std::map<uint32_t, Lane> lanes;
  double out_free = 0, in_free = 0;  // when the link's directions are free
};

enum class What : uint8_t { end, first_byte, last_byte };

struct Event {
  double at;
  uint64_t order;  // equal times: as they were made
  What what;
  size_t rank;
  OperationId operation;
  bool operator>(const Event& other) const {
    return std::tie(at, order) > std::tie(other.at, other.order);
  }
};

class Simulator {
 public:
  Simulator(const std::vector<Schedule>& ranks, const Binding& binding, const CostModel& model)
      : ranks_(ranks), binding_(binding), model_(model) {}
  Simulation run();

 private:
  const Operation& at(size_t rank, OperationId id) const { return ranks_[rank].operations[id]; }
  void push(double time, What what, size_t rank, OperationId id) {
    events_.push({time, order_++, what, rank, id});
  }
  uint64_t bytes(size_t rank, const std::vector<Range>& ranges) const {
    uint64_t total = 0;
    for (const Range& range : ranges) total += byte_bounds(ranks_[rank], range, binding_).size();
    return total;
  }
  double cost(size_t rank, const Operation& operation) const {
    const auto own = model_.kinds.find(operation.kind);
    if (own != model_.kinds.end()) return own->second(ranks_[rank], operation, binding_);
    return static_cast<double>(bytes(rank, operation.reads) + bytes(rank, operation.writes)) *
           model_.gamma;
  }
  void set_up(size_t rank);
  void ready(size_t rank, OperationId id);
  void start_next(size_t rank, Lane* lane);
  void send(size_t rank, OperationId id);
  void ended(size_t rank, OperationId id);

  const std::vector<Schedule>& ranks_;
  const Binding& binding_;
  const CostModel& model_;
  std::vector<RankState> states_;
  std::map<std::tuple<int, int, uint32_t>, OperationId> recvs_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t order_ = 0;
  double now_ = 0;
  size_t left_ = 0;
  Simulation result_;
};

void Simulator::set_up(size_t rank) {
  const Schedule& schedule = ranks_[rank];
  const size_t n = schedule.operations.size();
  RankState& state = states_[rank];
  state.waiting.resize(n);
  state.dependents.resize(n);
  state.posted.resize(n);
  state.arrived.resize(n);
  result_.timeline.ranks[rank].resize(n);
  left_ += n;
  for (OperationId id = 0; id < n; id++) {
    const Operation& o = schedule.operations[id];
    state.waiting[id] = static_cast<uint32_t>(o.after.size());
    for (OperationId before : o.after) state.dependents[before].push_back(id);
    if (o.kind->meaning == Meaning::recv) recvs_[{o.peer, schedule.rank, o.message}] = id;
  }
}

void Simulator::send(size_t rank, OperationId id) {
  const Operation& o = at(rank, id);
  const uint64_t size = bytes(rank, o.reads);
  RankState& state = states_[rank];
  const double begin = std::max(now_, state.out_free);
  state.out_free = begin + static_cast<double>(size) * model_.beta;
  result_.bytes_sent[rank] += size;
  result_.timeline.ranks[rank][id].begin = begin;
  push(state.out_free, What::end, rank, id);
  const auto recv = recvs_.find({static_cast<int>(rank), o.peer, o.message});
  if (recv != recvs_.end())
    push(begin + model_.alpha, What::first_byte, static_cast<size_t>(o.peer), recv->second);
}

void Simulator::ready(size_t rank, OperationId id) {
  RankState& state = states_[rank];
  const Operation& o = at(rank, id);
  result_.timeline.ranks[rank][id].begin = now_;
  if (o.kind->meaning == Meaning::send) {
    send(rank, id);
  } else if (o.kind->meaning == Meaning::recv) {
    state.posted[id] = true;
    if (state.arrived[id]) push(now_, What::end, rank, id);
  } else {
    Lane& lane = state.lanes[o.lane];
    lane.ready.insert(id);
    start_next(rank, &lane);
  }
}

void Simulator::start_next(size_t rank, Lane* lane) {
  if (lane->busy || lane->ready.empty()) return;
  const OperationId id = *lane->ready.begin();
  lane->ready.erase(lane->ready.begin());
  lane->busy = true;
  result_.timeline.ranks[rank][id].begin = now_;
  push(now_ + cost(rank, at(rank, id)), What::end, rank, id);
}

void Simulator::ended(size_t rank, OperationId id) {
  RankState& state = states_[rank];
  result_.timeline.ranks[rank][id].end = now_;
  result_.microseconds = std::max(result_.microseconds, now_);
  left_--;
  for (OperationId next : state.dependents[id])
    if (--state.waiting[next] == 0) ready(rank, next);
  const Operation& o = at(rank, id);
  if (o.kind->meaning == Meaning::send || o.kind->meaning == Meaning::recv) return;
  Lane& lane = state.lanes[o.lane];
  lane.busy = false;
  start_next(rank, &lane);
}

Simulation Simulator::run() {
  states_.resize(ranks_.size());
  result_.timeline.ranks.resize(ranks_.size());
  result_.bytes_sent.resize(ranks_.size());
  result_.bytes_received.resize(ranks_.size());
  for (size_t rank = 0; rank < ranks_.size(); rank++) set_up(rank);
  for (size_t rank = 0; rank < ranks_.size(); rank++)
    for (OperationId id = 0; id < ranks_[rank].operations.size(); id++)
      if (at(rank, id).after.empty()) ready(rank, id);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    RankState& state = states_[event.rank];
    switch (event.what) {
      case What::end:
        ended(event.rank, event.operation);
        break;
      case What::first_byte: {
        const uint64_t size = bytes(event.rank, at(event.rank, event.operation).writes);
        state.in_free = std::max(now_, state.in_free) + static_cast<double>(size) * model_.beta;
        result_.bytes_received[event.rank] += size;
        push(state.in_free, What::last_byte, event.rank, event.operation);
        break;
      }
      case What::last_byte:
        state.arrived[event.operation] = true;
        if (state.posted[event.operation]) push(now_, What::end, event.rank, event.operation);
        break;
    }
  }
  result_.complete = left_ == 0;
  result_.timeline.end = result_.microseconds;
  return std::move(result_);
}

}  // namespace

Simulation simulate(const std::vector<Schedule>& ranks, const Binding& binding,
                    const CostModel& model) {
  return Simulator(ranks, binding, model).run();
}

}  // namespace bitrail::schedule
