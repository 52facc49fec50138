// The plugin's settings: BITRAIL_* as everywhere, with NCCL's own variables as defaults.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/config/variables.h"
#include "runtime/transport/transport.h"

namespace bitrail::plugin {

// An environment: null for a name that is not set.
using Lookup = std::function<const char*(const char* name)>;

// NCCL's variables as assignments to the BITRAIL_* variables that mean the same. A value that
// cannot be used is left out and named in *ignored.
std::vector<config::Assignment> nccl_defaults(const Lookup& lookup,
                                              std::vector<std::string>* ignored);

// Reads both from the environment, and from the file that BITRAIL_CONFIG names.
Status load_settings(config::Settings* settings);

// What to open a transport with. `comm_id` is the communicator's, 0 where NCCL does not tell it:
// only peers of the same communicator and job are accepted.
void transport_options(const config::Settings& settings, uint64_t comm_id, int traffic_class,
                       transport::Options* options);

}  // namespace bitrail::plugin
