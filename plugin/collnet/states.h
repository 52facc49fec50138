// The error states of one communicator, by buffer range. Ranges do not overlap: one that is used in
// another way takes the place of what was there.
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>
#include <map>

#include "runtime/common/status.h"

namespace bitrail::plugin::collnet {

// The layout of a call of so many elements: blocks of 4,096 values, each with the mean of its
// absolute values as scale, padded no more than needed. *count has to outlive the layout.
bitrail_onebit_layout_t onebit_layout(const size_t* count);

class States {
 public:
  States() = default;
  ~States() { clear(); }
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  // The state of this range, zero the first time.
  Status find(bitrail_comm_t comm, const void* data, size_t count, bitrail_type_t type,
              bitrail_error_state_t* state);
  // Of ranges that touch these bytes. How many there were.
  size_t drop(const void* data, size_t bytes);
  void clear();  // before the communicator goes

 private:
  struct Entry {
    size_t bytes;
    bitrail_type_t type;
    bitrail_error_state_t state;
  };
  using Entries = std::map<const std::byte*, Entry>;  // by address
  Entries::iterator first_touching(const std::byte* begin);
  Entries entries_;
};

}  // namespace bitrail::plugin::collnet
