// `bitrail bench`: measurements that need no second process.
#pragma once

namespace bitrail::tool {

int bench_main(int argc, char** argv);

}  // namespace bitrail::tool
