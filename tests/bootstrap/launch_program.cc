// `bitrail launch` alone, for its tests.
#include "tools/bitrail/launch.h"

int main(int argc, char** argv) { return bitrail::tool::launch_main(argc, argv); }
