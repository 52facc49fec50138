// `bitrail info`: what this build is made of and what this machine and environment give it.
#pragma once

namespace bitrail::tool {

int info_main(int argc, char** argv);

}  // namespace bitrail::tool
