// The 1-bit collectives: one call for many tensors, block scales, halves alone, types, producers
// and consumers.
#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include <cmath>
#include <mutex>
#include <random>

#include "kernels/host/convert.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

std::vector<float> noise(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct Layout {
  std::vector<size_t> counts;
  bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT;
  bitrail_norm_t norm = BITRAIL_NORM_L2;
  size_t block = 0;
  bitrail_padding_t padding = BITRAIL_PADDING_DEEPSPEED;
};

class State {
 public:
  State(bitrail_comm_t comm, const Layout& layout) {
    const bitrail_onebit_layout_t c = {sizeof(c),     layout.counts.size(), layout.counts.data(),
                                       layout.scale,  layout.norm,          layout.block,
                                       layout.padding};
    if (bitrail_error_state_create(&state_, comm, &c) != BITRAIL_OK) std::abort();
  }
  ~State() { EXPECT_EQ(bitrail_error_state_destroy(state_), BITRAIL_OK); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  operator bitrail_error_state_t() const { return state_; }
  std::vector<char> saved() const {
    std::vector<char> data(bitrail_error_state_bytes(state_));
    EXPECT_EQ(bitrail_error_state_save(state_, data.data(), data.size()), BITRAIL_OK);
    return data;
  }

 private:
  bitrail_error_state_t state_ = nullptr;
};

bitrail_onebit_call_t floats(const float* send, float* recv) {
  return {sizeof(bitrail_onebit_call_t), send, recv, BITRAIL_FLOAT32, nullptr, nullptr, nullptr};
}

TEST(Segments, OneCallGivesTheNumbersOfSeparateCalls) {
  for (int world : {1, 2, 3, 4}) {
    test::World job(world);
    job.run([&](int rank, bitrail_comm_t comm) {
      const std::vector<size_t> counts = {37, 0, 1000, 300000, 1, 120};
      State together(comm, {counts});
      std::vector<std::unique_ptr<State>> apart;
      size_t total = 0;
      for (size_t count : counts) {
        apart.push_back(std::make_unique<State>(comm, Layout{{count}}));
        total += count;
      }
      for (uint32_t round = 0; round < 3; round++) {
        const std::vector<float> in = noise(total, 10 * round + static_cast<uint32_t>(rank));
        std::vector<float> one(total, -1), many(total, -2);
        bitrail_onebit_call_t call = floats(in.data(), one.data());
        ASSERT_EQ(bitrail_onebit_allreduce(together, &call, nullptr), BITRAIL_OK)
            << bitrail_last_error();
        size_t offset = 0;
        for (size_t t = 0; t < counts.size(); t++) {
          call = floats(in.data() + offset, many.data() + offset);
          ASSERT_EQ(bitrail_onebit_allreduce(*apart[t], &call, nullptr), BITRAIL_OK);
          offset += counts[t];
        }
        ASSERT_EQ(one, many) << "round " << round;
      }
    });
  }
}

// One magnitude everywhere is what a sign code can say exactly, if padding stays out of the scales:
// also where whole server chunks are padding, and in the second call, where errors would show.
TEST(Padding, TightKeepsWhatSignsCanSay) {
  for (const bitrail_scale_t scale : {BITRAIL_SCALE_SEGMENT, BITRAIL_SCALE_BLOCK}) {
    for (int world : {2, 3, 4}) {
      test::World job(world);
      job.run([&](int, bitrail_comm_t comm) {
        const std::vector<size_t> counts = {37, 1, 1000, 0, 4099};
        State state(comm, {counts, scale, BITRAIL_NORM_L2, 1024, BITRAIL_PADDING_TIGHT});
        std::vector<float> in(37 + 1 + 1000 + 4099), out(in.size());
        for (size_t i = 0; i < in.size(); i++) in[i] = i % 3 == 0 ? 0.5f : -0.5f;
        for (int round = 0; round < 3; round++) {
          bitrail_onebit_call_t call = floats(in.data(), out.data());
          ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK)
              << bitrail_last_error();
          if (scale == BITRAIL_SCALE_SEGMENT) {
            double worker = 1, server = 1;
            ASSERT_EQ(bitrail_error_state_norms(state, &worker, &server), BITRAIL_OK);
            EXPECT_LT(worker, 1e-4) << "world " << world;
            EXPECT_LT(server, 1e-4);
            for (size_t i = 0; i < in.size(); i++) ASSERT_NEAR(out[i], in[i], 1e-6) << i;
          }
        }
      });
    }
  }
}

TEST(Padding, TightIsDeepSpeedsWhereNothingIsPadded) {
  test::World job(3);
  job.run([&](int rank, bitrail_comm_t comm) {
    const std::vector<size_t> counts = {72, 72000};
    State loose(comm, {counts});
    State tight(comm, {counts, BITRAIL_SCALE_SEGMENT, BITRAIL_NORM_L2, 0, BITRAIL_PADDING_TIGHT});
    std::vector<float> one(72072), two(72072);
    for (uint32_t round = 0; round < 3; round++) {
      const std::vector<float> in = noise(72072, 10 * round + static_cast<uint32_t>(rank));
      bitrail_onebit_call_t call = floats(in.data(), one.data());
      ASSERT_EQ(bitrail_onebit_allreduce(loose, &call, nullptr), BITRAIL_OK);
      call = floats(in.data(), two.data());
      ASSERT_EQ(bitrail_onebit_allreduce(tight, &call, nullptr), BITRAIL_OK);
      ASSERT_EQ(one, two);
    }
  });
}

// What error feedback promises: over many calls the sum of results follows the sum of true means.
void follows_the_mean(int world, const Layout& layout) {
  test::World job(world);
  size_t total = 0;
  for (size_t count : layout.counts) total += count;
  job.run([&](int rank, bitrail_comm_t comm) {
    State state(comm, layout);
    std::vector<float> out(total);
    std::vector<double> sent(total), got(total);
    constexpr uint32_t kRounds = 60;
    for (uint32_t round = 0; round < kRounds; round++) {
      std::vector<double> mean(total);
      std::vector<float> mine;
      for (int r = 0; r < world; r++) {
        const std::vector<float> in = noise(total, 100 * round + static_cast<uint32_t>(r));
        for (size_t i = 0; i < total; i++) mean[i] += static_cast<double>(in[i]) / world;
        if (r == rank) mine = in;
      }
      bitrail_onebit_call_t call = floats(mine.data(), out.data());
      ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      for (size_t i = 0; i < total; i++) {
        sent[i] += mean[i];
        got[i] += static_cast<double>(out[i]);
      }
    }
    // The difference is what the error buffers hold: bounded, while the sums grow with the rounds.
    double difference = 0, size = 0;
    for (size_t i = 0; i < total; i++) {
      difference += (sent[i] - got[i]) * (sent[i] - got[i]);
      size += sent[i] * sent[i];
    }
    EXPECT_LT(std::sqrt(difference / size), 0.5) << "rank " << rank;
    EXPECT_GT(size, 0);
  });
}

TEST(Onebit, ErrorFeedbackFollowsTheMean) {
  follows_the_mean(2, {{5000, 40}});
  follows_the_mean(3, {{10000, 40}, BITRAIL_SCALE_BLOCK, BITRAIL_NORM_L2, 1024});
  follows_the_mean(2, {{9000}, BITRAIL_SCALE_BLOCK, BITRAIL_NORM_L1, 2048});
  follows_the_mean(2, {{9000, 17}, BITRAIL_SCALE_SEGMENT, BITRAIL_NORM_L1});
  follows_the_mean(3,
                   {{5000, 40}, BITRAIL_SCALE_SEGMENT, BITRAIL_NORM_L2, 0, BITRAIL_PADDING_TIGHT});
}

// Block scales against a plain restatement on one rank's view: W ranks computed here in order.
TEST(Blocks, AgreeWithThePlainLoop) {
  constexpr int kWorld = 3;
  constexpr size_t kBlock = 1024, kCount = 10000;
  test::World job(kWorld);
  std::mutex mutex;
  job.run([&](int rank, bitrail_comm_t comm) {
    State state(comm, {{kCount}, BITRAIL_SCALE_BLOCK, BITRAIL_NORM_L2, kBlock});
    // C: the padded count over W, up to a whole block.
    const size_t quantum = 3 * 24, padded = (kCount + quantum - 1) / quantum * quantum;
    const size_t part = padded / kWorld, chunk = (part + kBlock - 1) / kBlock * kBlock;
    std::vector<std::vector<float>> error(kWorld, std::vector<float>(chunk * kWorld));
    std::vector<float> server(chunk * kWorld);
    for (uint32_t round = 0; round < 3; round++) {
      std::vector<float> average(chunk * kWorld);
      const auto code = [](float* b, size_t n, float* q) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += static_cast<double>(b[i]) * static_cast<double>(b[i]);
        const float s = static_cast<float>(static_cast<double>(static_cast<float>(std::sqrt(sum))) /
                                           std::sqrt(static_cast<double>(n)));
        for (size_t i = 0; i < n; i++) {
          q[i] = b[i] >= 0 ? s : -s;
          b[i] -= q[i];
        }
      };
      for (int r = 0; r < kWorld; r++) {
        const std::vector<float> in = noise(kCount, 7 * round + static_cast<uint32_t>(r));
        std::vector<float>& e = error[static_cast<size_t>(r)];
        for (size_t j = 0; j < kWorld; j++)
          for (size_t i = 0; i < part && j * part + i < kCount; i++)
            e[j * chunk + i] += in[j * part + i];
        std::vector<float> q(kBlock);
        for (size_t at = 0; at < e.size(); at += kBlock) {
          code(&e[at], kBlock, q.data());
          for (size_t i = 0; i < kBlock; i++)
            average[at + i] += (q[i] > 0 ? 1.0f : -1.0f) * (std::abs(q[i]) * (1.0f / kWorld));
        }
      }
      std::vector<float> expected(chunk * kWorld);
      for (size_t at = 0; at < server.size(); at += kBlock) {
        for (size_t i = 0; i < kBlock; i++) server[at + i] += average[at + i];
        code(&server[at], kBlock, &expected[at]);
      }
      const std::vector<float> mine = noise(kCount, 7 * round + static_cast<uint32_t>(rank));
      std::vector<float> out(kCount);
      bitrail_onebit_call_t call = floats(mine.data(), out.data());
      ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      std::lock_guard lock(mutex);
      size_t wrong = 0;
      for (size_t j = 0; j < kWorld; j++)
        for (size_t i = 0; i < part && j * part + i < kCount; i++) {
          const float want = expected[j * chunk + i], got = out[j * part + i];
          if (std::abs(want - got) > 1e-5f * std::abs(want)) wrong++;
        }
      // A different order of summation may turn a sign that is within rounding of zero.
      EXPECT_LE(wrong, 2u) << "round " << round << ", rank " << rank;
    }
  });
}

TEST(Halves, ReduceScatterThenAllgatherIsAllreduceWithoutServerErrorInTheFirst) {
  for (const bitrail_scale_t scale : {BITRAIL_SCALE_SEGMENT, BITRAIL_SCALE_BLOCK}) {
    test::World job(3);
    job.run([&](int rank, bitrail_comm_t comm) {
      const Layout layout = {{5040, 72, 40032}, scale, BITRAIL_NORM_L2, 1024};
      State whole(comm, layout), halves(comm, layout);
      const size_t total = 45144;  // multiples of 72 each: no padding inside the tensors
      size_t own = 0;
      for (size_t segment = 0; segment < 3; segment++) {
        size_t begin = 0, end = 0;
        ASSERT_EQ(bitrail_onebit_chunk(halves, segment, rank, &begin, &end), BITRAIL_OK);
        own += end - begin;
      }
      // Errors are zero in the first call, so both ways see the same numbers.
      const std::vector<float> in = noise(total, static_cast<uint32_t>(rank));
      std::vector<float> expected(total), part(own), out(total);
      bitrail_onebit_call_t call = floats(in.data(), expected.data());
      ASSERT_EQ(bitrail_onebit_allreduce(whole, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      call = floats(in.data(), part.data());
      ASSERT_EQ(bitrail_onebit_reduce_scatter(halves, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      call = floats(part.data(), out.data());
      ASSERT_EQ(bitrail_onebit_allgather(halves, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      size_t different = 0;
      for (size_t i = 0; i < total; i++)
        if (std::abs(out[i] - expected[i]) > 1e-5f) different++;
      // With block scales a chunk ends in padding, which carries signs only on the undivided way.
      EXPECT_LE(different, scale == BITRAIL_SCALE_SEGMENT ? 0u : 3u * 1024u) << "rank " << rank;
      EXPECT_EQ(whole.saved().size(), halves.saved().size());
    });
  }
}

TEST(Types, SixteenBitCallsGiveTheFloat32ResultRounded) {
  for (const bitrail_type_t type : {BITRAIL_FLOAT16, BITRAIL_BFLOAT16}) {
    const auto narrow = type == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
    const auto widen = type == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat;
    test::World job(2);
    job.run([&](int rank, bitrail_comm_t comm) {
      const Layout layout = {{9001, 300}};
      const size_t n = 9301;
      State a(comm, layout), b(comm, layout);
      std::vector<float> in = noise(n, static_cast<uint32_t>(rank)), expected(n), rounded(n),
                         got(n);
      std::vector<uint16_t> raw(n), out(n), want(n);
      narrow(in.data(), n, raw.data());
      widen(raw.data(), n, in.data());
      bitrail_onebit_call_t call = floats(in.data(), expected.data());
      ASSERT_EQ(bitrail_onebit_allreduce(a, &call, nullptr), BITRAIL_OK);
      call = {sizeof(call), raw.data(), out.data(), type, nullptr, nullptr, nullptr};
      ASSERT_EQ(bitrail_onebit_allreduce(b, &call, nullptr), BITRAIL_OK) << bitrail_last_error();
      narrow(expected.data(), n, want.data());
      EXPECT_EQ(out, want);
      EXPECT_EQ(a.saved(), b.saved()) << "error state is float32 whatever the type";
    });
  }
}

struct Double {
  const float* in;
  std::vector<float> out;
  size_t offset[2];
  std::vector<int> seen;
};

TEST(Hooks, ProducerFeedsAndConsumerTakesEachValueOnce) {
  test::World job(3);
  job.run([&](int rank, bitrail_comm_t comm) {
    const Layout layout = {{70000, 33}};
    const size_t n = 70033;
    State plain(comm, layout), hooked(comm, layout);
    const std::vector<float> in = noise(n, static_cast<uint32_t>(rank));
    std::vector<float> expected(n);
    bitrail_onebit_call_t call = floats(in.data(), expected.data());
    Double user = {in.data(), std::vector<float>(n), {0, 70000}, std::vector<int>(n)};
    for (int round = 0; round < 2; round++) {
      call = floats(in.data(), expected.data());
      ASSERT_EQ(bitrail_onebit_allreduce(plain, &call, nullptr), BITRAIL_OK);
      std::fill(user.seen.begin(), user.seen.end(), 0);
      call = {sizeof(call), nullptr, nullptr, BITRAIL_FLOAT32, nullptr, nullptr, &user};
      call.produce = [](void* u, size_t segment, size_t begin, size_t count, float* out) {
        const Double& d = *static_cast<Double*>(u);
        std::copy_n(d.in + d.offset[segment] + begin, count, out);
      };
      call.consume = [](void* u, size_t segment, size_t begin, size_t count, const float* values) {
        Double& d = *static_cast<Double*>(u);
        const size_t at = d.offset[segment] + begin;
        std::copy_n(values, count, d.out.begin() + static_cast<ptrdiff_t>(at));
        for (size_t i = 0; i < count; i++) d.seen[at + i]++;
      };
      ASSERT_EQ(bitrail_onebit_allreduce(hooked, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      EXPECT_EQ(user.out, expected);
      EXPECT_EQ(std::count(user.seen.begin(), user.seen.end(), 1), static_cast<ptrdiff_t>(n));
    }
    EXPECT_EQ(plain.saved(), hooked.saved());
  });
}

TEST(ErrorState, SavesLoadsAndRefusesWhatDoesNotFit) {
  test::World job(2);
  job.run([&](int rank, bitrail_comm_t comm) {
    State a(comm, {{3000}}), b(comm, {{3000}}), other(comm, {{2999}});
    const std::vector<float> in = noise(3000, static_cast<uint32_t>(rank));
    std::vector<float> first(3000), second(3000), again(3000);
    bitrail_onebit_call_t call = floats(in.data(), first.data());
    ASSERT_EQ(bitrail_onebit_allreduce(a, &call, nullptr), BITRAIL_OK);
    std::vector<char> saved = a.saved();
    call = floats(in.data(), second.data());
    ASSERT_EQ(bitrail_onebit_allreduce(a, &call, nullptr), BITRAIL_OK);
    ASSERT_EQ(bitrail_error_state_load(b, saved.data(), saved.size()), BITRAIL_OK);
    call = floats(in.data(), again.data());
    ASSERT_EQ(bitrail_onebit_allreduce(b, &call, nullptr), BITRAIL_OK);
    EXPECT_EQ(second, again) << "a restored state goes on bit for bit";
    double worker = 0, server = 0;
    EXPECT_EQ(bitrail_error_state_norms(b, &worker, &server), BITRAIL_OK);
    EXPECT_GT(worker, 0);
    EXPECT_GT(server, 0);
    ASSERT_EQ(bitrail_error_state_reset(b), BITRAIL_OK);
    EXPECT_EQ(bitrail_error_state_norms(b, &worker, &server), BITRAIL_OK);
    EXPECT_EQ(worker, 0);

    EXPECT_EQ(bitrail_error_state_load(other, saved.data(), saved.size()),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_error_state_load(b, saved.data(), saved.size() - 1),
              BITRAIL_ERR_INVALID_ARGUMENT);
    saved[8] ^= 1;  // the rank
    EXPECT_EQ(bitrail_error_state_load(b, saved.data(), saved.size()),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(bitrail_last_error()).find("rank"), std::string::npos);
    saved[8] ^= 1;
    const float poison = NAN;
    std::memcpy(saved.data() + saved.size() - 4, &poison, 4);
    EXPECT_EQ(bitrail_error_state_load(b, saved.data(), saved.size()), BITRAIL_ERR_NOT_FINITE);
    saved[0] ^= 1;
    EXPECT_EQ(bitrail_error_state_load(b, saved.data(), saved.size()),
              BITRAIL_ERR_INVALID_ARGUMENT);
  });
}

TEST(Counters, WireBytesAreWhatTheEquationSays) {
  test::World job(4);
  job.run([&](int, bitrail_comm_t comm) {
    constexpr size_t kCount = 100000, kPadded = 100000;  // a multiple of 4 * 8
    State state(comm, {{kCount}});
    std::vector<float> data(kCount, 1);
    bitrail_onebit_call_t call = floats(data.data(), data.data());
    bitrail_counters_t before = {}, after = {};
    before.struct_size = after.struct_size = sizeof(before);
    ASSERT_EQ(bitrail_comm_counters(comm, &before), BITRAIL_OK);
    ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK);
    ASSERT_EQ(bitrail_comm_counters(comm, &after), BITRAIL_OK);
    // 2 (W-1) (P / 8W + 4), the scale in each phase; the verdict's flag rides with both scales.
    const uint64_t wire = 2 * 3 * (kPadded / 32 + 4) + 2 * 3 * 4;
    EXPECT_EQ(after.wire_bytes_sent - before.wire_bytes_sent, wire);
    EXPECT_EQ(after.wire_bytes_received - before.wire_bytes_received, wire);
    EXPECT_EQ(after.raw_bytes - before.raw_bytes, kCount * 4);
    EXPECT_EQ(after.calls - before.calls, 1u);
  });
}

TEST(Layout, BadOnesAreRefused) {
  test::World job(1);
  job.run([&](int, bitrail_comm_t comm) {
    bitrail_error_state_t state = nullptr;
    size_t count = 10;
    bitrail_onebit_layout_t layout = {
        sizeof(layout),           0, &count, BITRAIL_SCALE_SEGMENT, BITRAIL_NORM_L2, 0,
        BITRAIL_PADDING_DEEPSPEED};
    EXPECT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_ERR_INVALID_ARGUMENT);
    layout.segments = 1;
    layout.scale = BITRAIL_SCALE_BLOCK;
    for (size_t block : {512ul, 1000ul, 131072ul}) {
      layout.block = block;
      EXPECT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_ERR_INVALID_ARGUMENT);
    }
    layout.block = 1024;
    layout.padding = static_cast<bitrail_padding_t>(2);
    EXPECT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_ERR_INVALID_ARGUMENT);
    // A structure from before there was a choice of padding has nothing there.
    layout.struct_size = offsetof(bitrail_onebit_layout_t, padding);
    ASSERT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_OK);
    EXPECT_EQ(bitrail_error_state_destroy(state), BITRAIL_OK);
    state = nullptr;
    layout.struct_size = sizeof layout;
    layout.padding = BITRAIL_PADDING_TIGHT;
    count = SIZE_MAX;
    EXPECT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(state, nullptr);
  });
}

}  // namespace
}  // namespace bitrail
