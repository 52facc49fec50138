// Algorithm::cost of the 1-bit algorithms: docs/algorithms.md has the formulas as text.
#pragma once

#include "runtime/algorithms/algorithm.h"

namespace bitrail::algorithms {

double onebit_direct_allreduce_cost(const Request& request, const Rates& rates);
double onebit_direct_reduce_scatter_cost(const Request& request, const Rates& rates);
double onebit_direct_allgather_cost(const Request& request, const Rates& rates);
double onebit_hier_allreduce_cost(const Request& request, const Rates& rates);
double onebit_leader_allreduce_cost(const Request& request, const Rates& rates);

}  // namespace bitrail::algorithms
