// The compressed all-reduce through the whole runtime against the values recorded from DeepSpeed:
// sign bits exactly, scales within 1e-6, arrays within 5e-6 (tests/data/onebit/README.md).
#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include <mutex>

#include "tests/support/golden.h"
#include "tests/support/onebit_view.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

// What one call left, to compare after it.
void compare(const test::Golden& golden, int when, int rank, const test::OnebitSegmentView& wire,
             const bitrail_error_state& state, const std::vector<float>& output) {
  SCOPED_TRACE(testing::Message() << "call " << when << ", rank " << rank);
  int calls = 0;
  for (const auto& call : golden.text.at("calls")) {
    if (call.at("iter") != when || call.at("rank") != rank) continue;
    calls++;
    const double worker = call.at("worker_scale"), server = call.at("server_scale");
    EXPECT_NEAR(wire.worker_scale, worker, 1e-6 * worker);
    EXPECT_NEAR(wire.server_scale, server, 1e-6 * server);
    EXPECT_EQ(test::GoldenCrc(wire.worker_bits.data(), wire.worker_bits.size()),
              call.at("crc32_worker_bits"));
    EXPECT_EQ(test::GoldenCrc(wire.server_bits.data(), wire.server_bits.size()),
              call.at("crc32_server_bits"));
  }
  EXPECT_EQ(calls, 1);
  const auto check = [&](const char* kind, const std::vector<float>& mine, int of, double floor) {
    const auto recorded = golden.floats(when, of, kind);
    if (!recorded.found) return;
    ASSERT_EQ(recorded.values.size(), mine.size()) << kind;
    EXPECT_LE(test::GoldenDistance(mine.data(), recorded.values.data(), mine.size(), floor), 5e-6)
        << kind;
  };
  check("worker_error_out", test::WorkerError(state, 0), rank, 0.1 * wire.worker_scale);
  check("server_error_out", test::ServerError(state, 0), rank, 0.1 * wire.server_scale);
  check("output", output, -1, 0);
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, CompressedAllreduce) {
  const test::Golden golden = test::ReadGolden("allreduce/" + GetParam());
  const size_t n = golden.text.at("n");
  test::World job(golden.text.at("world"));
  std::mutex one_at_a_time;  // gtest's messages
  job.run([&](int rank, bitrail_comm_t comm) {
    bitrail_onebit_layout_t layout = {sizeof(layout),  1, &n, BITRAIL_SCALE_SEGMENT,
                                      BITRAIL_NORM_L2, 0};
    bitrail_error_state_t state = nullptr;
    ASSERT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_OK);
    test::OnebitSegmentView wire;
    state->observe = [&](engine::Run& run) { wire = test::OnebitView(run, *state).segment(0); };
    for (int when = 0; when < golden.text.at("iters").get<int>(); when++) {
      std::vector<float> data = test::GoldenInput(golden, when, n, rank), output(n);
      bitrail_onebit_call_t call = {sizeof(call), data.data(), output.data(), BITRAIL_FLOAT32,
                                    nullptr,      nullptr,     nullptr};
      ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      std::lock_guard lock(one_at_a_time);
      compare(golden, when, rank, wire, *state, output);
    }
    EXPECT_EQ(bitrail_error_state_destroy(state), BITRAIL_OK);
  });
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  const nlohmann::json index = test::ReadGoldenIndex();
  for (const auto& entry : index.at("allreduce")) list.push_back(entry.at("name"));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Golden, testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace bitrail
