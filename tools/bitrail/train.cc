#include "tools/bitrail/train.h"

#ifdef BITRAIL_HAVE_DNNL

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/train/train.h"

namespace bitrail::tool {

int train_main(int argc, char** argv) {
  CLI::App app{"", "bitrail"};
  int exit_code = 0;
  train::AddTrainCommand(app, &exit_code);
  std::vector<std::string> words(argv, argv + argc);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 wants them reversed
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return exit_code;
}

}  // namespace bitrail::tool

#else

#include <cstdio>

namespace bitrail::tool {

int train_main(int /*argc*/, char** /*argv*/) {
  std::fputs(
      "bitrail train: this build has no trainer, because oneDNN was not found. Install "
      "libdnnl-dev, "
      "then run meson setup --reconfigure on the build directory.\n",
      stderr);
  return 1;
}

}  // namespace bitrail::tool

#endif
