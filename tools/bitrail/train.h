// `bitrail train`, where the build has the trainer; a refusal that says what is missing otherwise.
#pragma once

namespace bitrail::tool {

int train_main(int argc, char** argv);

}  // namespace bitrail::tool
