// A C++ program outside the tree: one step of 1-bit Adam in a job of one rank.
#include <bitrail/bitrail.hpp>
#include <cstdio>
#include <vector>

int main() {
  try {
    bitrail::Communicator comm;
    std::vector<float> params(100, 1.0F), gradient(100, 0.5F);
    const bitrail_param_group_t group = bitrail::param_group(1e-2);
    bitrail::Optimizer::Options options;
    options.params = params;
    options.groups = {&group, 1};
    options.freeze_step = 10;
    auto optimizer = bitrail::Optimizer::onebit_adam(comm, options);
    if (optimizer.wants_mean()) comm.allreduce(std::span(gradient), BITRAIL_AVG);
    optimizer.step(gradient);
    std::printf("C++, version %s: rank %d of %d, parameter after a step %g\n", bitrail_version(),
                comm.rank(), comm.world_size(), static_cast<double>(params[0]));
    return params[0] < 1.0F ? 0 : 1;
  } catch (const bitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
