// What a CollNet init() gives: a communicator's use of it (table version 11), or the whole
// process's (older versions, which have no contexts).
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "runtime/config/settings.h"

namespace bitrail::plugin::collnet {

enum class Mode : uint8_t { off, exact, onebit };  // BITRAIL_COLLNET

struct Comm;

// What init() read.
struct Choice {
  Mode mode = Mode::off;
  config::Settings settings;
};

struct Instance {
  uint64_t comm_id = 0;

  std::mutex mutex;  // guards what follows
  Choice choice;
  std::set<Comm*> comms;
};

// A copy: another thread's init() may read the process's settings anew meanwhile.
Choice choice_of(Instance* instance);

// init() of a communicator; never fails (0 devices instead).
Instance* create_instance(uint64_t comm_id);
// Null for what is no living instance.
Instance* find_instance(void* context);
// The one of table versions without contexts; null before its init(). A later init() reads the
// settings anew.
Instance* shared_instance();
Instance* create_shared_instance();
// Closes all that is left. Unknown ones are ignored.
void destroy_instance(void* context);

// Of the latest init(): devices() and reduceSupport() have no context.
Mode mode();

}  // namespace bitrail::plugin::collnet
