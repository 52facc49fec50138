// Data-parallel training with 1-bit Adam: every rank sees its own samples of a linear model
// y = w . x + noise, and all ranks find the same w.
//
//   bitrail launch -n 4 onebit_adam
#include <bitrail/bitrail.hpp>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr size_t kFeatures = 4'096;
constexpr int kBatch = 16, kSteps = 400, kFreezeStep = 60;

// gradient = dL/dw of L = mean((w . x - y)^2) / 2 over a batch; returns L.
float batch_gradient(const std::vector<float>& truth, const std::vector<float>& w,
                     std::mt19937* random, std::vector<float>* gradient) {
  std::normal_distribution<float> normal;
  std::vector<float> x(kFeatures);
  float loss = 0;
  gradient->assign(kFeatures, 0);
  for (int sample = 0; sample < kBatch; sample++) {
    float error = 0.1F * normal(*random);
    for (size_t i = 0; i < kFeatures; i++) {
      x[i] = normal(*random) / std::sqrt(static_cast<float>(kFeatures));
      error += (w[i] - truth[i]) * x[i];
    }
    for (size_t i = 0; i < kFeatures; i++) (*gradient)[i] += error * x[i] / kBatch;
    loss += 0.5F * error * error / kBatch;
  }
  return loss;
}

}  // namespace

int main() {
  try {
    bitrail::Communicator comm;
    std::vector<float> truth(kFeatures), w(kFeatures, 0), gradient;
    std::mt19937 shared(1), own(static_cast<unsigned>(100 + comm.rank()));
    std::normal_distribution<float> normal;
    for (float& value : truth) value = normal(shared);

    bitrail_param_group_t group = bitrail::param_group(0.01, 0.9, 0.95, 1e-6);
    bitrail::Optimizer::Options options;
    options.params = w;
    options.groups = {&group, 1};
    options.freeze_step = kFreezeStep;
    auto optimizer = bitrail::Optimizer::onebit_adam(comm, options);

    for (int step = 1; step <= kSteps; step++) {
      float loss = batch_gradient(truth, w, &own, &gradient);
      const uint64_t before = comm.counters().wire_bytes_sent;
      // Before the freeze the optimizer wants the mean gradient; after it exchanges by itself.
      if (optimizer.wants_mean()) comm.allreduce(std::span(gradient), BITRAIL_AVG);
      optimizer.step(gradient);
      const uint64_t sent = comm.counters().wire_bytes_sent - before;
      if (step % 50 != 0) continue;
      comm.allreduce(std::span(&loss, 1), BITRAIL_AVG);
      if (comm.rank() == 0)
        std::printf("step %3d  loss %.4f  %s, sent %llu bytes\n", step, static_cast<double>(loss),
                    optimizer.frozen() ? "1 bit" : "full", static_cast<unsigned long long>(sent));
    }
    return 0;
  } catch (const bitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
