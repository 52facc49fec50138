// The subcommand `bitrail train`.
#pragma once

namespace CLI {
class App;
}

namespace bitrail::train {

// Adds `train` with its options to `app`. When the command line names it, parsing runs it and sets
// *exit_code: 0, 1 after a failure (its text is on stderr), 130 after an interruption. `exit_code`
// must outlive the parsing.
void AddTrainCommand(CLI::App& app, int* exit_code);

}  // namespace bitrail::train
