// From handles to one of the library's communicators.
#pragma once

#include <bitrail/bitrail.h>

#include <vector>

#include "plugin/collnet/handle.h"
#include "runtime/bootstrap/socket.h"

namespace bitrail::plugin::collnet {

// Takes a port for the ranks to meet at, should this rank be the first, and fills *meeting. The
// port is this process's as long as `port` lives; nobody listens there yet.
Status reserve(const config::Settings& settings, Meeting* meeting, bootstrap::UniqueFd* port);

// Joins the ranks whose handles these are, by rank. Blocks until all are there, or until
// BITRAIL_TIMEOUT_MS. `port` is what this rank's reserve() took.
Status join(const config::Settings& settings, const std::vector<Meeting>& ranks, int rank,
            const bootstrap::UniqueFd& port, bitrail_comm_t* comm);

}  // namespace bitrail::plugin::collnet
