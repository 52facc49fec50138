// The mean of a vector over all ranks, exactly and with 1 bit a value.
//
//   bitrail launch -n 4 allreduce
#include <bitrail/bitrail.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  try {
    bitrail::Communicator comm;
    constexpr size_t kCount = 100'000;
    std::vector<float> input(kCount), exact(kCount), code(kCount);
    for (size_t i = 0; i < kCount; i++)
      input[i] = std::sin(0.01F * static_cast<float>(i)) + static_cast<float>(comm.rank());

    comm.allreduce<float>(input, exact, BITRAIL_AVG);

    // With error feedback, what one call loses the next one brings: the mean over calls converges.
    bitrail::ErrorState errors(comm, std::span(&kCount, 1));
    std::vector<double> sum(kCount);
    for (int call = 1; call <= 64; call++) {
      errors.allreduce(input, code);
      double difference = 0, norm = 0;
      for (size_t i = 0; i < kCount; i++) {
        sum[i] += static_cast<double>(code[i]);
        const double mean = sum[i] / call, want = static_cast<double>(exact[i]);
        difference += (mean - want) * (mean - want);
        norm += want * want;
      }
      if (comm.rank() == 0 && (call & (call - 1)) == 0)
        std::printf("mean of %2d compressed calls: relative error %.4f\n", call,
                    std::sqrt(difference / norm));
    }
    return 0;
  } catch (const bitrail::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
