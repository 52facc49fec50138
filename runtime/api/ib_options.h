// The BITRAIL_IB_* variables as the verbs transport takes them.
#pragma once

#include "runtime/config/settings.h"
#include "runtime/transport/verbs/options.h"

namespace bitrail::api {

transport::verbs::IbOptions ib_options(const config::Settings& settings);

}  // namespace bitrail::api
