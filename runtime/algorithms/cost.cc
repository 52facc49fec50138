#include "runtime/algorithms/cost.h"

#include <algorithm>
#include <vector>

namespace bitrail::algorithms {

double overlap(uint32_t pieces, std::initializer_list<double> times) {
  double longest = 0;
  double all = 0;
  for (double time : times) {
    longest = std::max(longest, time);
    all += time;
  }
  return longest + (all - longest) / std::max(pieces, 1U);
}

System::System(const Request& request, const Rates& rates)
    : placement_(request.placement), rates_(rates), bytes_(static_cast<double>(request.bytes)) {
  if (!placement_ || placement_->world_size() != request.world_size) {
    apart_ = topology::place_blocks(request.world_size, 1);
    placement_ = &apart_;
  }
  crowd_ = std::max(1.0, rates.cores > 0 ? placement_->most() / rates.cores : 1.0);
}

double System::everybody_network(double bytes) const {
  double longest = 0;
  for (const std::vector<int>& ranks : placement_->ranks) {
    const auto here = static_cast<double>(ranks.size());
    longest =
        std::max(longest, network(here * (world() - here) * bytes, static_cast<int>(ranks.size())));
  }
  return longest;
}

double System::step(double bytes, const std::function<int(int rank)>& peer) const {
  std::vector<int> leaving(static_cast<size_t>(nodes()));
  bool inside = false;
  for (int rank = 0; rank < world(); rank++) {
    const int to = peer(rank);
    if (to < 0) continue;
    const int node = placement_->node_of(rank);
    if (placement_->node_of(to) == node) {
      inside = true;
    } else {
      leaving[static_cast<size_t>(node)]++;
    }
  }
  const int most = *std::max_element(leaving.begin(), leaving.end());
  const double alpha = most ? rates_.network.alpha : rates_.node.alpha;
  return alpha + messages(2) + std::max(inside ? mates(bytes) : 0, network(most * bytes, most));
}

}  // namespace bitrail::algorithms
