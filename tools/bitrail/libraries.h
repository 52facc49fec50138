// The libraries this build uses, with the versions found at run time where they can tell.
#pragma once

#include <string>
#include <vector>

namespace bitrail::tool {

struct Library {
  std::string name, version;  // version "not built in" where an option left it out
};

std::vector<Library> libraries();

}  // namespace bitrail::tool
