#include "runtime/planner/registry.h"

#include <deque>
#include <mutex>
#include <utility>

#include "runtime/algorithms/cost.h"
#include "runtime/algorithms/cost_onebit.h"
#include "runtime/algorithms/nodes.h"

namespace bitrail::planner {

namespace {

bool always(const Request&) { return true; }
// The order of summation in a ring or a tree is fixed too, but it is not the ranks' order.
bool any_order(const Request& request) { return !request.deterministic; }
bool any_order_and_nodes(const Request& request) {
  return any_order(request) && algorithms::spans_nodes(request);
}
bool out_of_place(const Request& request) { return !request.in_place; }

struct Registry {
  std::mutex mutex;
  std::deque<Algorithm> algorithms = {
      {"direct", Collective::allreduce, always, algorithms::direct_allreduce,
       algorithms::direct_allreduce_cost},
      {"doubling", Collective::allreduce, any_order, algorithms::doubling_allreduce,
       algorithms::doubling_allreduce_cost},
      {"one_shot", Collective::allreduce, always, algorithms::one_shot_allreduce,
       algorithms::one_shot_allreduce_cost},
      {"ring", Collective::allreduce, any_order, algorithms::ring_allreduce,
       algorithms::ring_allreduce_cost},
      {"halving", Collective::allreduce, any_order, algorithms::halving_allreduce,
       algorithms::halving_allreduce_cost},
      {"tree", Collective::allreduce, any_order, algorithms::tree_allreduce,
       algorithms::tree_allreduce_cost},
      {"hier", Collective::allreduce, any_order_and_nodes, algorithms::hier_allreduce,
       algorithms::hier_allreduce_cost},
      {"leader", Collective::allreduce, any_order_and_nodes, algorithms::leader_allreduce,
       algorithms::leader_allreduce_cost},
      {"direct", Collective::reduce_scatter, always, algorithms::direct_reduce_scatter,
       algorithms::direct_reduce_scatter_cost},
      {"ring", Collective::reduce_scatter, any_order, algorithms::ring_reduce_scatter,
       algorithms::ring_reduce_scatter_cost},
      {"hier", Collective::reduce_scatter, any_order_and_nodes, algorithms::hier_reduce_scatter,
       algorithms::hier_reduce_scatter_cost},
      {"direct", Collective::allgather, always, algorithms::direct_allgather,
       algorithms::direct_allgather_cost},
      {"ring", Collective::allgather, always, algorithms::ring_allgather,
       algorithms::ring_allgather_cost},
      {"bruck", Collective::allgather, always, algorithms::bruck_allgather,
       algorithms::bruck_allgather_cost},
      {"hier", Collective::allgather, algorithms::spans_nodes, algorithms::hier_allgather,
       algorithms::hier_allgather_cost},
      {"tree", Collective::broadcast, always, algorithms::tree_broadcast,
       algorithms::tree_broadcast_cost},
      {"hier_tree", Collective::broadcast, algorithms::spans_nodes, algorithms::hier_tree_broadcast,
       algorithms::hier_tree_broadcast_cost},
      {"direct", Collective::alltoall, out_of_place, algorithms::direct_alltoall,
       algorithms::direct_alltoall_cost},
      {"pairwise", Collective::alltoall, out_of_place, algorithms::pairwise_alltoall,
       algorithms::pairwise_alltoall_cost},
      {"dissemination", Collective::barrier, always, algorithms::dissemination_barrier,
       algorithms::dissemination_barrier_cost},
      {"hier", Collective::barrier, algorithms::spans_nodes, algorithms::hier_barrier,
       algorithms::hier_barrier_cost},
      {"onebit_direct", Collective::onebit_allreduce, always, algorithms::onebit_direct_allreduce,
       algorithms::onebit_direct_allreduce_cost},
      {"onebit_direct", Collective::onebit_reduce_scatter, always,
       algorithms::onebit_direct_reduce_scatter, algorithms::onebit_direct_reduce_scatter_cost},
      {"onebit_direct", Collective::onebit_allgather, always, algorithms::onebit_direct_allgather,
       algorithms::onebit_direct_allgather_cost},
      {"onebit_hier", Collective::onebit_allreduce, algorithms::onebit_hier_applies,
       algorithms::onebit_hier_allreduce, algorithms::onebit_hier_allreduce_cost,
       algorithms::onebit_hier_rails},
      {"onebit_leader", Collective::onebit_allreduce, algorithms::onebit_hier_applies,
       algorithms::onebit_leader_allreduce, algorithms::onebit_leader_allreduce_cost,
       algorithms::onebit_leader_rails},
  };
};

// Made at first use and never destroyed: calls may come from other libraries' destructors.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

const Algorithm* find_locked(const Registry& table, Collective collective, std::string_view name) {
  for (const Algorithm& algorithm : table.algorithms)
    if (algorithm.collective == collective && algorithm.name == name) return &algorithm;
  return nullptr;
}

}  // namespace

Status register_algorithm(Algorithm algorithm) {
  if (algorithm.name.empty() || !algorithm.applies || !algorithm.build)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "an algorithm needs a name, a predicate and a builder (name \"{}\")",
                   algorithm.name);
  if (algorithm.name.find_first_of(":, \t") != std::string::npos)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "algorithm name \"{}\": BITRAIL_ALGO allows no colon, comma or space in it",
                   algorithm.name);
  Registry& table = registry();
  const std::lock_guard<std::mutex> lock(table.mutex);
  if (find_locked(table, algorithm.collective, algorithm.name))
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} has an algorithm \"{}\" already",
                   schedule::collective_name(algorithm.collective), algorithm.name);
  table.algorithms.push_back(std::move(algorithm));
  return {};
}

const Algorithm* find(Collective collective, std::string_view name) {
  Registry& table = registry();
  const std::lock_guard<std::mutex> lock(table.mutex);
  return find_locked(table, collective, name);
}

std::vector<const Algorithm*> algorithms_of(Collective collective) {
  Registry& table = registry();
  const std::lock_guard<std::mutex> lock(table.mutex);
  std::vector<const Algorithm*> found;
  for (const Algorithm& algorithm : table.algorithms)
    if (algorithm.collective == collective) found.push_back(&algorithm);
  return found;
}

}  // namespace bitrail::planner
