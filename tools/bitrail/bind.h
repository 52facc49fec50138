// Which processors each rank of a host gets.
#pragma once

#include <sched.h>

#include <vector>

#include "runtime/common/status.h"

namespace bitrail::tool {

// Cuts the processors that this process may use into `ranks` disjoint shares that keep close
// together (cores of a package, threads of a core). Left alone, the kernel now and then keeps two
// ranks that wait for each other on one core, which makes a microsecond's call ten. *shares stays
// empty when there are fewer processors than ranks: then nothing is bound.
Status share_processors(int ranks, std::vector<cpu_set_t>* shares);

}  // namespace bitrail::tool
