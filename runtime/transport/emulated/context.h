// Slow links over any transport, without privileges: a decorator that holds each message back until
// the link model (link.h) says that it has arrived, and only then gives it to the transport below.
// Traffic inside a node is not shaped. BITRAIL_LINK_MBPS, BITRAIL_LINK_US, BITRAIL_RANKS_PER_NODE.
#pragma once

#include <memory>

#include "runtime/transport/transport.h"

namespace bitrail::transport::emulated {

Status wrap(std::unique_ptr<Context> inner, const Options& options,
            std::unique_ptr<Context>* context);

}  // namespace bitrail::transport::emulated
