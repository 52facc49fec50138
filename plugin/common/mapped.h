#pragma once

#include <cstddef>

namespace bitrail::plugin {

// Is all of it mapped in this process? The kernel looks only at its list of mappings, whatever the
// size.
bool mapped(void* data, size_t bytes);

}  // namespace bitrail::plugin
