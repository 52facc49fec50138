// The BITRAIL_* variables as the transports take them.
#pragma once

#include "runtime/config/settings.h"
#include "runtime/transport/transport.h"

namespace bitrail::api {

// The BITRAIL_IB_* ones.
transport::verbs::IbOptions ib_options(const config::Settings& settings);
// All of them, for a job of so many ranks; the identity is the caller's to add.
transport::Options transport_options(const config::Settings& settings, int world_size);

}  // namespace bitrail::api
