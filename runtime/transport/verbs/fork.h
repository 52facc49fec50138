// A process that registered memory may fork: the children must not share its pinned pages.
#pragma once

namespace bitrail::transport::verbs {

// ibv_fork_init, once a process, before the first use of a device. Its failure is a warning: all
// else works, and who does not fork does not mind.
void prepare_fork();

}  // namespace bitrail::transport::verbs
