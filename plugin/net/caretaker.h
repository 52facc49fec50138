// A thread that progresses domains which nobody else did for some milliseconds. It exists while
// there are domains.
#pragma once

namespace bitrail::plugin {

struct Domain;

// Before its first use and before its end. unwatch() returns when the thread is not in the domain
// and will not be again; the last one ends the thread.
void watch(Domain* domain);
void unwatch(Domain* domain);

}  // namespace bitrail::plugin
