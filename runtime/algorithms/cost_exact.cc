// Cost formulas of the exact algorithms. W ranks on N nodes, n bytes, K pieces; System has the
// terms. docs/algorithms.md has the same as text.
#include <algorithm>
#include <vector>

#include "runtime/algorithms/cost.h"
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

namespace {

// ---- Everybody to everybody --------------------------------------------------------------------

// `halves` times a chunk to every other rank, `summed` bytes of sources.
double direct(const Request& request, const Rates& rates, int halves, bool sums) {
  const System s(request, rates);
  if (s.world() == 1) return 0;
  return halves * s.alpha() + s.messages(2.0 * halves * (s.world() - 1) * pieces_of(request)) +
         overlap(pieces_of(request),
                 {halves * s.everybody_mates(s.chunk()), halves * s.everybody_network(s.chunk()),
                  sums ? s.sum(s.bytes()) : 0});
}

// ---- Ring --------------------------------------------------------------------------------------

// W-1 steps a half. A chunk's way leads over all edges but one; a node sends over those that leave
// it.
double ring(const Request& request, const Rates& rates, int halves, bool sums) {
  const System s(request, rates);
  const int world = s.world();
  if (world == 1) return 0;
  std::vector<int> leaving(static_cast<size_t>(s.nodes()));
  int crossing = 0;
  for (int rank = 0; rank < world; rank++) {
    const int node = s.placement().node_of(rank);
    if (s.placement().node_of((rank + 1) % world) == node) continue;
    leaving[static_cast<size_t>(node)]++;
    crossing++;
  }
  const int most = *std::max_element(leaving.begin(), leaving.end());
  const double way = (world - 1.0) / world * halves;
  const double sent = way * s.bytes();
  return way * (crossing * rates.network.alpha + (world - crossing) * rates.node.alpha) +
         s.messages(2.0 * halves * (world - 1) * pieces_of(request)) +
         overlap(pieces_of(request),
                 {crossing < world ? s.mates(sent) : 0, s.network(most * sent, most),
                  sums ? s.sum(2 * sent / halves) : 0});
}

// ---- Steps between partners --------------------------------------------------------------------

// Folding and unfolding of worlds that are no power of two.
double fold(const System& s, const Folding& folding) {
  if (folding.folded == 0) return 0;
  const auto up = [&](int rank) {
    return rank < 2 * folding.folded && rank % 2 == 0 ? rank + 1 : -1;
  };
  return 2 * s.step(s.bytes(), up) + s.sum(2 * s.bytes());
}

double exchange(const System& s, const Folding& folding, int step, double bytes) {
  return s.step(bytes, [&](int rank) {
    if (rank < 2 * folding.folded && rank % 2 == 0) return -1;
    return folding.rank_of(folding.index_of(rank) ^ (1 << step));
  });
}

// ---- Trees -------------------------------------------------------------------------------------

struct Tree {
  double fill = 0;   // the way of the first piece to the last rank, `levels` sums on it
  double mates = 0;  // of the busiest rank and node, all pieces one way
  double network = 0;
  double sources = 1;  // of the largest sum
  double messages = 0;
};

// From `root` on; `place` gives each rank's children.
template <typename Place>
Tree walk(const System& s, uint32_t pieces, int root, Place place) {
  const double piece = s.bytes() / pieces;
  Tree tree;
  std::vector<double> reached(static_cast<size_t>(s.world()));
  std::vector<int> leaving(static_cast<size_t>(s.nodes()));
  std::vector<int> open = {root};
  while (!open.empty()) {
    const int rank = open.back();
    open.pop_back();
    const std::vector<int> children = place(rank).children;
    double sent = reached[static_cast<size_t>(rank)];
    int inside = 0;
    for (int child : children) {
      const Link& link = s.link(rank, child);
      sent += link.beta * piece;
      reached[static_cast<size_t>(child)] = sent + link.alpha + s.messages(2);
      tree.fill = std::max(tree.fill, reached[static_cast<size_t>(child)]);
      const auto node = static_cast<size_t>(s.placement().node_of(rank));
      if (s.placement().node_of(child) == static_cast<int>(node)) {
        inside++;
      } else {
        leaving[node]++;
      }
      open.push_back(child);
    }
    tree.mates = std::max(tree.mates, s.mates(inside * s.bytes()));
    tree.sources = std::max(tree.sources, 1.0 + static_cast<double>(children.size()));
  }
  for (int edges : leaving) tree.network = std::max(tree.network, s.network(edges * s.bytes(), 1));
  tree.messages = s.messages(tree.sources * pieces);
  return tree;
}

// The first piece's way, then the others behind it at the pace of the busiest resource.
double flow(uint32_t pieces, double fill, std::initializer_list<double> times) {
  return fill + (pieces - 1.0) / pieces * std::max(times);
}

// ---- Nodes -------------------------------------------------------------------------------------

int ceil_div(int a, int b) { return (a + b - 1) / b; }

// 2 (N-1)/N of the vector out of each node. `served` of `rails` shares lie with the busiest rank.
double over_rails(const Request& request, const Rates& rates, int rails) {
  const System s(request, rates);
  const double nodes = s.nodes();
  const double n = s.bytes();
  const uint32_t rounds = pieces_of(request);
  const double local = rounds == 1 ? 1 : rounds * nodes;  // messages of a share inside the node
  double longest = 0;
  for (const std::vector<int>& ranks : s.placement().ranks) {
    const auto here = static_cast<int>(ranks.size());
    const int served = ceil_div(rails, here);
    const double share = static_cast<double>(served) / rails;
    const double inside = here > 1 ? (1 - share) + share * (here - 1) : 0;
    const double sources = here > 1 ? here + (nodes - 1) / nodes : 1;
    // With one round the last sum reads the node's instead of its parts again.
    const double last = rounds == 1 && here > 1 ? 1 / nodes : 0;
    const double time =
        (here > 1 ? 2 * rates.node.alpha : 0) + 2 * rates.network.alpha +
        s.messages(2 * local * (rails - served + served * (here - 1)) +
                   4 * rounds * served * (nodes - 1)) +
        overlap(static_cast<uint32_t>(local),
                {s.mates(inside * n), s.network(2 * (nodes - 1) / nodes * n, std::min(rails, here)),
                 s.sum((sources + last) * share * n)});
    longest = std::max(longest, time);
  }
  return longest;
}

// Reduce-scatter and all-gather: a chunk crosses to each node, or from it, once.
double by_nodes(const Request& request, const Rates& rates, bool sums) {
  const System s(request, rates);
  const int world = s.world();
  const int nodes = s.nodes();
  double longest = 0;
  for (const std::vector<int>& ranks : s.placement().ranks) {
    const auto here = static_cast<int>(ranks.size());
    // Chunks that the busiest rank sums, or hands on, for its node: its own, and others' in turn.
    const int served = 1 + ceil_div(world - here, here);
    const int others = here > 1 ? served * (here - 1) : 0;
    const double messages = (world - served) + others + (served - 1) + (nodes - 1);
    const double inside = here > 1 ? (sums ? world - served : others) : 0;
    const double crossing = sums ? world - here : std::max(here * (nodes - 1), world - here);
    const double sources = (here > 1 ? served * here : 1) + nodes - 1;
    const double time = (here > 1 ? rates.node.alpha : 0) + rates.network.alpha +
                        s.messages(messages * pieces_of(request)) +
                        overlap(pieces_of(request),
                                {s.mates(inside * s.chunk()), s.network(crossing * s.chunk(), here),
                                 sums ? s.sum(sources * s.chunk()) : 0});
    longest = std::max(longest, time);
  }
  return longest;
}

}  // namespace

double direct_allreduce_cost(const Request& request, const Rates& rates) {
  return direct(request, rates, 2, true);
}
double direct_reduce_scatter_cost(const Request& request, const Rates& rates) {
  return direct(request, rates, 1, true);
}
double direct_allgather_cost(const Request& request, const Rates& rates) {
  return direct(request, rates, 1, false);
}
double direct_alltoall_cost(const Request& request, const Rates& rates) {
  return direct(request, rates, 1, false);
}

double pairwise_alltoall_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  if (s.world() == 1) return 0;
  const double depth = request.depth ? request.depth : kPairwiseDepth;
  const double turns = (s.world() - 1.0) * pieces_of(request);
  return std::max(1.0, turns / depth) * s.alpha() + s.messages(2 * turns) +
         overlap(pieces_of(request),
                 {s.everybody_mates(s.chunk()), s.everybody_network(s.chunk())});
}

double one_shot_allreduce_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  if (s.world() == 1) return 0;
  return s.alpha() + s.messages(2.0 * (s.world() - 1)) +
         std::max(s.everybody_mates(s.bytes()), s.everybody_network(s.bytes())) +
         s.sum(s.world() * s.bytes());
}

double ring_allreduce_cost(const Request& request, const Rates& rates) {
  return ring(request, rates, 2, true);
}
double ring_reduce_scatter_cost(const Request& request, const Rates& rates) {
  return ring(request, rates, 1, true);
}
double ring_allgather_cost(const Request& request, const Rates& rates) {
  return ring(request, rates, 1, false);
}

double doubling_allreduce_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  const Folding folding = folding_of(s.world());
  double time = fold(s, folding);
  for (int step = 0; step < folding.steps; step++)
    time += exchange(s, folding, step, s.bytes()) + s.sum(2 * s.bytes());
  return time;
}

double halving_allreduce_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  const Folding folding = folding_of(s.world());
  double time = fold(s, folding);
  double half = s.bytes();
  for (int step = 0; step < folding.steps; step++) {
    half /= 2;
    time += 2 * exchange(s, folding, step, half) + s.sum(2 * half);
  }
  return time;
}

double bruck_allgather_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  const int world = s.world();
  double time = 0;
  for (int have = 1; have < world; have *= 2)
    time += s.step(std::min(have, world - have) * s.chunk(),
                   [&](int rank) { return (rank - have + world) % world; });
  return time;
}

double tree_allreduce_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  if (s.world() == 1) return 0;
  const uint32_t pieces = tree_pieces(request);
  const Tree tree = walk(s, pieces, 0, [&](int rank) { return tree_place(request, rank); });
  const double sums = s.sum(tree.sources * s.bytes());
  // Up and down at once: both ways of an edge, each on its own wire, and one more towards the top.
  const double both = tree.network + (s.nodes() > 1 ? s.network(s.bytes(), 1) : 0);
  return flow(pieces, 2 * tree.fill + sums / pieces,
              {2 * tree.mates, both, sums, 2 * tree.messages});
}

double tree_broadcast_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  const int world = s.world();
  const uint32_t pieces = pieces_of(request);
  const Tree tree = walk(s, pieces, request.root, [&](int rank) {
    TreePlace place;
    for (int child : binomial_children((rank - request.root + world) % world, world))
      place.children.push_back((child + request.root) % world);
    return place;
  });
  return flow(pieces, tree.fill, {tree.mates, tree.network, tree.messages});
}

double hier_tree_broadcast_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  const uint32_t pieces = pieces_of(request);
  const Tree tree = walk(s, pieces, request.root, [&](int rank) {
    return hier_broadcast_place(s.placement(), request.root, rank);
  });
  return flow(pieces, tree.fill, {tree.mates, tree.network, tree.messages});
}

double hier_allreduce_cost(const Request& request, const Rates& rates) {
  return over_rails(request, rates, request.placement ? rails_of(*request.placement) : 1);
}
double leader_allreduce_cost(const Request& request, const Rates& rates) {
  return over_rails(request, rates, 1);
}
double hier_reduce_scatter_cost(const Request& request, const Rates& rates) {
  return by_nodes(request, rates, true);
}
double hier_allgather_cost(const Request& request, const Rates& rates) {
  return by_nodes(request, rates, false);
}

double dissemination_barrier_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  double time = 0;
  for (int distance = 1; distance < s.world(); distance *= 2)
    time += s.step(0, [&](int rank) { return (rank + distance) % s.world(); });
  return time;
}

double hier_barrier_cost(const Request& request, const Rates& rates) {
  const System s(request, rates);
  double time = 2 * rates.node.alpha + s.messages(2.0 * (s.placement().most() - 1));
  for (int distance = 1; distance < s.nodes(); distance *= 2)
    time += rates.network.alpha + s.messages(2);
  return time;
}

}  // namespace bitrail::algorithms
