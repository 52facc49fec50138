// The subcommands of the `bitrail` tool: one table, one file each.
#pragma once

#include <span>
#include <string_view>

namespace bitrail::tool {

struct Command {
  std::string_view name;
  std::string_view summary;
  // argv[0] is the subcommand's name. Returns the exit code.
  int (*run)(int argc, char** argv);
};

std::span<const Command> commands();

}  // namespace bitrail::tool
