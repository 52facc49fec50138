// The `bitrail` command: picks the subcommand and hands the rest of the line to it.
#include <bitrail/bitrail.h>

#include <cstdio>
#include <string_view>

#include "runtime/config/nearest.h"
#include "tools/bitrail/commands.h"

namespace {

using bitrail::tool::Command;
using bitrail::tool::commands;

void usage(std::FILE* out) {
  std::fprintf(out,
               "BitRail %s: collectives for distributed training, exact or 1 bit a value\n\n"
               "usage: bitrail COMMAND [options]\n\ncommands:\n",
               bitrail_version());
  for (const Command& command : commands())
    std::fprintf(out, "  %-10.*s %.*s\n", static_cast<int>(command.name.size()),
                 command.name.data(), static_cast<int>(command.summary.size()),
                 command.summary.data());
  std::fprintf(out, "\n`bitrail COMMAND --help` tells the options of each.\n");
}

std::string_view nearest_command(std::string_view name) {
  const Command* best = commands().data();
  for (const Command& command : commands())
    if (bitrail::config::edit_distance(name, command.name) <
        bitrail::config::edit_distance(name, best->name))
      best = &command;
  return best->name;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name.empty() || name == "--help" || name == "-h" || name == "help") {
    usage(name.empty() ? stderr : stdout);
    return name.empty() ? 2 : 0;
  }
  if (name == "--version") {
    std::printf("bitrail %s\n", bitrail_version());
    return 0;
  }
  for (const Command& command : commands())
    if (command.name == name) return command.run(argc - 1, argv + 1);
  const std::string_view guess = nearest_command(name);
  std::fprintf(stderr,
               "bitrail: there is no command '%s'; did you mean '%.*s'? See bitrail --help\n",
               argv[1], static_cast<int>(guess.size()), guess.data());
  return 2;
}
