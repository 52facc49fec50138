// An optimizer's state as the content of a checkpoint (checkpoint/content.h), and back.
#pragma once

#include <string>

#include "optimizers/optimizer.h"

namespace bitrail::optimizers {

// Both collective, with bitrail.h's promises.
Status SaveOptimizer(bitrail_optimizer& optimizer, const std::string& directory);
Status LoadOptimizer(bitrail_optimizer& optimizer, const std::string& directory, Loaded rule);

}  // namespace bitrail::optimizers
