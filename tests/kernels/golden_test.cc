// The whole compressed all-reduce from kernels alone, all ranks in one thread and no transport,
// against the values recorded from DeepSpeed: sign bits exactly, scales within 1e-6.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/host/pack.h"
#include "kernels/host/scale.h"
#include "kernels/host/unpack.h"

namespace bitrail {
namespace {

// State and messages of one rank: padded length P, chunk C = P / W.
struct Rank {
  std::vector<float> input, worker_error, server_error;
  std::vector<uint8_t> worker_bits, server_bits;
  float worker_scale = 0, server_scale = 0;
};

float Scale(double squares, size_t n) {
  return static_cast<float>(std::sqrt(squares)) / std::sqrt(static_cast<float>(n));
}

void SendSide(Rank& rank, size_t padded) {
  rank.worker_scale =
      Scale(kernels::SquaredSum(rank.input.data(), rank.worker_error.data(), padded), padded);
  kernels::PackSigns(rank.input.data(), rank.worker_scale, padded, rank.worker_bits.data(),
                     rank.worker_error.data());
}

void ServerSide(std::vector<Rank>& ranks, size_t server, size_t chunk) {
  std::vector<const uint8_t*> bits;
  std::vector<float> weights;
  for (Rank& rank : ranks) {
    bits.push_back(rank.worker_bits.data() + server * chunk / 8);
    weights.push_back(rank.worker_scale * (1.0f / static_cast<float>(ranks.size())));
  }
  Rank& self = ranks[server];
  float* acc = self.server_error.data();
  kernels::UnpackAverage(bits.data(), weights.data(), static_cast<int>(ranks.size()), chunk, acc);
  self.server_scale = Scale(kernels::SquaredSum(acc, nullptr, chunk), chunk);
  kernels::PackSigns(nullptr, self.server_scale, chunk, self.server_bits.data(), acc);
}

void CheckErrors(const test::Golden& golden, int when, size_t r, const Rank& rank) {
  const int id = static_cast<int>(r);
  const auto worker = golden.floats(when, id, "worker_error_out");
  if (worker.found) {
    ASSERT_EQ(worker.values.size(), rank.worker_error.size());
    EXPECT_LE(test::GoldenDistance(rank.worker_error.data(), worker.values.data(),
                                   worker.values.size(), 0.1 * rank.worker_scale),
              5e-6);
  }
  const auto server = golden.floats(when, id, "server_error_out");
  if (server.found) {
    ASSERT_EQ(server.values.size(), rank.server_error.size());
    EXPECT_LE(test::GoldenDistance(rank.server_error.data(), server.values.data(),
                                   server.values.size(), 0.1 * rank.server_scale),
              5e-6);
  }
}

void CheckOutput(const test::Golden& golden, int when, size_t n, size_t chunk,
                 const std::vector<Rank>& ranks) {
  std::vector<float> output(chunk * ranks.size());
  for (size_t k = 0; k < ranks.size(); k++) {
    kernels::UnpackSigns(ranks[k].server_bits.data(), ranks[k].server_scale, chunk,
                         output.data() + k * chunk);
  }
  const auto expected = golden.floats(when, -1, "output");
  if (!expected.found) return;
  ASSERT_EQ(expected.values.size(), n);
  EXPECT_LE(test::GoldenDistance(output.data(), expected.values.data(), n), 5e-6);
}

void Input(const test::Golden& golden, int when, size_t n, size_t r, std::vector<float>& input) {
  const auto stored = golden.floats(when, static_cast<int>(r), "input");
  if (stored.found) {
    std::copy(stored.values.begin(), stored.values.end(), input.begin());
    return;
  }
  const uint64_t seed = golden.text.at("input_seed").get<uint64_t>();
  const std::vector<float> bell = test::GoldenBell(seed + 100 * static_cast<uint64_t>(when) + r, n);
  for (size_t i = 0; i < n; i++) input[i] = bell[i] + static_cast<float>(r) / 64.0f;
}

class KernelGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelGolden, CompressedAllreduce) {
  const test::Golden golden = test::ReadGolden("allreduce/" + GetParam());
  const size_t n = golden.text.at("n"), world = golden.text.at("world");
  const size_t quantum = world * std::lcm(world, size_t{8});
  const size_t padded = (n + quantum - 1) / quantum * quantum, chunk = padded / world;
  ASSERT_EQ(golden.text.at("npad"), padded);
  std::vector<Rank> ranks(world);
  for (Rank& rank : ranks) {
    rank.input.assign(padded, 0);
    rank.worker_error.assign(padded, 0);
    rank.server_error.assign(chunk, 0);
    rank.worker_bits.assign(padded / 8, 0);
    rank.server_bits.assign(chunk / 8, 0);
  }
  size_t calls = 0;
  for (int when = 0; when < golden.text.at("iters").get<int>(); when++) {
    for (size_t r = 0; r < world; r++) {
      Input(golden, when, n, r, ranks[r].input);
      SendSide(ranks[r], padded);
    }
    for (size_t k = 0; k < world; k++) ServerSide(ranks, k, chunk);
    for (const auto& call : golden.text.at("calls")) {
      if (call.at("iter") != when) continue;
      const size_t r = call.at("rank");
      SCOPED_TRACE(testing::Message() << "call " << when << ", rank " << r);
      const Rank& rank = ranks[r];
      const double worker = call.at("worker_scale"), server = call.at("server_scale");
      EXPECT_NEAR(rank.worker_scale, worker, 1e-6 * worker);
      EXPECT_NEAR(rank.server_scale, server, 1e-6 * server);
      EXPECT_EQ(test::GoldenCrc(rank.worker_bits.data(), padded / 8), call.at("crc32_worker_bits"));
      EXPECT_EQ(test::GoldenCrc(rank.server_bits.data(), chunk / 8), call.at("crc32_server_bits"));
      CheckErrors(golden, when, r, rank);
      calls++;
    }
    CheckOutput(golden, when, n, chunk, ranks);
  }
  EXPECT_EQ(calls, golden.text.at("calls").size());
  EXPECT_GT(calls, 0u);
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  const nlohmann::json index = test::ReadGoldenIndex();
  for (const auto& entry : index.at("allreduce")) names.push_back(entry.at("name"));
  return names;
}

INSTANTIATE_TEST_SUITE_P(, KernelGolden, ::testing::ValuesIn(Names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace bitrail
