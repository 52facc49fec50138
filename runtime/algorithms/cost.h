// What cost formulas are made of. The exact algorithms' stand beside each other in cost_exact.cc;
// docs/algorithms.md has them as text.
//
// A cost is the time of the slowest rank in microseconds: latencies one after the other, what the
// processor does for each message, and the work that runs side by side (bytes between ranks of a
// node, bytes through a node's ports, sums).
#pragma once

#include <functional>
#include <initializer_list>

#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

// Work of three resources that pieces keep busy at once: with K pieces all but the longest hides,
// except for one piece of it.
double overlap(uint32_t pieces, std::initializer_list<double> times);

// A request seen by its nodes. Without a placement every rank is a node of its own: the cautious
// guess.
class System {
 public:
  System(const Request& request, const Rates& rates);
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  const topology::Placement& placement() const { return *placement_; }
  const Rates& rates() const { return rates_; }
  int world() const { return placement_->world_size(); }
  int nodes() const { return placement_->nodes(); }
  double bytes() const { return bytes_; }
  double chunk() const { return bytes_ / world(); }

  // One message's way where all ranks exchange.
  double alpha() const { return nodes() > 1 ? rates_.network.alpha : rates_.node.alpha; }
  const Link& link(int from, int to) const {
    return placement_->node_of(from) == placement_->node_of(to) ? rates_.node : rates_.network;
  }
  // Of one rank: `count` messages sent or taken, `bytes` of sources summed. Ranks of the largest
  // node share its cores.
  double messages(double count) const { return count * rates_.message * crowd_; }
  double sum(double bytes) const { return bytes * rates_.reduce * crowd_; }
  // A rank sends so many bytes to its mates while they do the same.
  double mates(double bytes) const { return bytes * std::max(rates_.memory, rates_.node.beta); }
  // A node sends so many bytes; `senders` of its ranks do.
  double network(double bytes, int senders) const {
    return bytes * rates_.network.beta / std::max(1, std::min(rates_.ports, senders));
  }
  // Every rank sends `bytes` to every other one: to the mates, and out of the busiest node.
  double everybody_mates(double bytes) const { return mates((placement_->most() - 1) * bytes); }
  double everybody_network(double bytes) const;

  // A step in which rank r sends `bytes` to peer(r); negative: nothing. With its latency and the
  // messages' work.
  double step(double bytes, const std::function<int(int rank)>& peer) const;

 private:
  topology::Placement apart_;  // when the request has none
  const topology::Placement* placement_;
  const Rates& rates_;
  double bytes_;
  double crowd_;
};

// Algorithm::cost of the exact ones: O(W), or O(W log W) where partners change.
double direct_allreduce_cost(const Request& request, const Rates& rates);
double doubling_allreduce_cost(const Request& request, const Rates& rates);
double one_shot_allreduce_cost(const Request& request, const Rates& rates);
double ring_allreduce_cost(const Request& request, const Rates& rates);
double halving_allreduce_cost(const Request& request, const Rates& rates);
double tree_allreduce_cost(const Request& request, const Rates& rates);
double hier_allreduce_cost(const Request& request, const Rates& rates);
double leader_allreduce_cost(const Request& request, const Rates& rates);
double direct_reduce_scatter_cost(const Request& request, const Rates& rates);
double ring_reduce_scatter_cost(const Request& request, const Rates& rates);
double hier_reduce_scatter_cost(const Request& request, const Rates& rates);
double direct_allgather_cost(const Request& request, const Rates& rates);
double ring_allgather_cost(const Request& request, const Rates& rates);
double bruck_allgather_cost(const Request& request, const Rates& rates);
double hier_allgather_cost(const Request& request, const Rates& rates);
double tree_broadcast_cost(const Request& request, const Rates& rates);
double hier_tree_broadcast_cost(const Request& request, const Rates& rates);
double direct_alltoall_cost(const Request& request, const Rates& rates);
double pairwise_alltoall_cost(const Request& request, const Rates& rates);
double dissemination_barrier_cost(const Request& request, const Rates& rates);
double hier_barrier_cost(const Request& request, const Rates& rates);

}  // namespace bitrail::algorithms
