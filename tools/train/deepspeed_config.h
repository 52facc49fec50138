// DeepSpeed's JSON configuration. What it means here is told in docs/optimizers.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/common/status.h"
#include "tools/train/options.h"

namespace bitrail::train {

class JsonSection;

// Sets what the text says in *options, DeepSpeed's defaults where it is silent, and adds to
// options->notes what it says and nobody follows. options->schedule_scale multiplies what the file
// counts in steps. `file` is for messages. BITRAIL_ERR_CONFIG names file and key.
Status ParseDeepSpeedConfig(std::string_view text, const std::string& file, TrainOptions* options);
// The same from a file of at most 1 MiB.
Status ReadDeepSpeedConfig(const std::string& path, TrainOptions* options);

// The sections "optimizer" and "scheduler", for ParseDeepSpeedConfig.
Status ParseDeepSpeedOptimizer(const nlohmann::json& section, const JsonSection& file,
                               TrainOptions* options);
Status ParseDeepSpeedScheduler(const nlohmann::json& section, const JsonSection& file,
                               TrainOptions* options);

// `steps` times options.schedule_scale, rounded, at least 1 (0 stays 0).
int64_t ScaledSteps(const TrainOptions& options, int64_t steps);

}  // namespace bitrail::train
