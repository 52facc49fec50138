// `bitrail topo`: what this machine, or one that a file describes, is made of, and the routes that
// a collective takes in it.
#pragma once

namespace bitrail::tool {

int topo_main(int argc, char** argv);

}  // namespace bitrail::tool
