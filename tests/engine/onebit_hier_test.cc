// The hierarchical 1-bit allreduce through the whole runtime: numbers, refusals, error states.
#include <gtest/gtest.h>

#include <mutex>

#include "kernels/host/convert.h"
#include "tests/engine/onebit_nodes.h"
#include "tests/support/golden.h"

namespace bitrail {
namespace {

using test::Allreduce;
using test::ErrorState;
using test::Noise;
using test::OnebitLayout;
using test::Placement;
using test::RunOnNodes;

const char* const kNames[] = {"onebit_hier", "onebit_leader"};
int rails_of(const std::string& name, const Placement& placement) {
  return name == "onebit_hier" ? placement.fewest() : 1;
}

std::vector<Placement> placements() {
  return {topology::place_blocks(4, 2), topology::place_cyclic(6, 3), topology::place_blocks(6, 3),
          topology::place_ranks({0, 0, 0, 1, 1}), topology::place_ranks({0, 1, 1})};
}

std::vector<std::vector<float>> inputs_of(size_t world, size_t n, uint32_t round) {
  std::vector<std::vector<float>> inputs;
  for (size_t rank = 0; rank < world; rank++)
    inputs.push_back(Noise(n, 100 * round + static_cast<uint32_t>(rank)));
  return inputs;
}

void expect_plain_numbers(const std::string& name, const Placement& placement,
                          const OnebitLayout& layout, int64_t piece) {
  constexpr uint32_t kRounds = 3;
  const auto world = static_cast<size_t>(placement.world_size());
  test::PlainNodes plain(placement, rails_of(name, placement), layout);
  std::vector<std::vector<float>> expected;
  for (uint32_t round = 0; round < kRounds; round++)
    expected.push_back(plain.call(inputs_of(world, layout.total(), round)));
  std::vector<std::vector<float>> got(world);
  for (auto& one : got) one.resize(kRounds * layout.total());
  RunOnNodes(
      placement, name,
      [&](int rank, bitrail_comm_t comm) {
        ErrorState state(comm, layout);
        EXPECT_EQ(state->algorithm->name, name);
        for (uint32_t round = 0; round < kRounds; round++) {
          const std::vector<float> in =
              Noise(layout.total(), 100 * round + static_cast<uint32_t>(rank));
          ASSERT_EQ(Allreduce(state, in.data(),
                              got[static_cast<size_t>(rank)].data() + round * layout.total()),
                    BITRAIL_OK)
              << bitrail_last_error();
        }
      },
      piece);
  for (size_t rank = 1; rank < world; rank++) EXPECT_EQ(got[rank], got[0]) << "rank " << rank;
  for (uint32_t round = 0; round < kRounds; round++) {
    size_t wrong = 0;
    for (size_t i = 0; i < layout.total(); i++) {
      const float want = expected[round][i];
      if (std::abs(got[0][round * layout.total() + i] - want) > 1e-5f * std::abs(want)) wrong++;
    }
    // A different order of summation may turn a sign that is within rounding of zero.
    EXPECT_LE(wrong, 2u) << name << ", " << placement.nodes() << " nodes of "
                         << placement.world_size() << " ranks, round " << round;
  }
}

TEST(OnebitHier, AgreesWithThePlainLoop) {
  for (const char* name : kNames)
    for (const Placement& placement : placements()) {
      expect_plain_numbers(name, placement, {{37, 0, 1000, 5003, 1}}, 0);
      expect_plain_numbers(name, placement,
                           {{37, 9000}, BITRAIL_SCALE_BLOCK, BITRAIL_NORM_L2, 1024}, 0);
    }
}

TEST(OnebitHier, AgreesWithThePlainLoopInManyPieces) {
  for (const char* name : kNames) {
    const Placement placement = topology::place_blocks(4, 2);
    for (const bitrail_norm_t norm : {BITRAIL_NORM_L2, BITRAIL_NORM_L1}) {
      expect_plain_numbers(name, placement, {{37, 30000}, BITRAIL_SCALE_SEGMENT, norm}, 1024);
      expect_plain_numbers(name, placement, {{37, 30000}, BITRAIL_SCALE_BLOCK, norm, 1024}, 1024);
    }
    expect_plain_numbers(
        name, placement,
        {{37, 30000}, BITRAIL_SCALE_SEGMENT, BITRAIL_NORM_L2, 0, BITRAIL_PADDING_TIGHT}, 1024);
  }
}

// A rail is a flat allreduce of the nodes over its share, bit for bit: of the nodes' means.
void expect_flat_bits(int nodes, int each, bitrail_scale_t scale) {
  constexpr uint32_t kRounds = 3;
  const auto rails = static_cast<size_t>(each);
  const size_t share = 2160, total = share * rails;  // no padding in either world
  const Placement placement = topology::place_blocks(nodes * each, each);
  std::vector<std::vector<std::vector<float>>> inputs;
  std::vector<std::vector<float>> flat(kRounds), hier(kRounds);
  for (uint32_t round = 0; round < kRounds; round++) {
    inputs.push_back(inputs_of(placement.node.size(), total, round));
    flat[round].resize(total);
    hier[round].resize(total);
  }
  for (size_t rail = 0; rail < rails; rail++) {
    test::World(nodes).run([&](int node, bitrail_comm_t comm) {
      ErrorState state(comm, {{share}, scale, BITRAIL_NORM_L2, 1024});
      for (uint32_t round = 0; round < kRounds; round++) {
        std::vector<float> mean(share), out(share);
        for (const int rank : placement.ranks_of(node))
          for (size_t i = 0; i < share; i++)
            mean[i] += inputs[round][static_cast<size_t>(rank)][rail * share + i];
        for (float& value : mean) value *= static_cast<float>(1.0 / each);
        ASSERT_EQ(Allreduce(state, mean.data(), out.data()), BITRAIL_OK);
        if (node == 0)
          std::copy(out.begin(), out.end(),
                    flat[round].begin() + static_cast<std::ptrdiff_t>(rail * share));
      }
    });
  }
  RunOnNodes(placement, "onebit_hier", [&](int rank, bitrail_comm_t comm) {
    ErrorState state(comm, {{total}, scale, BITRAIL_NORM_L2, 1024});
    std::vector<float> out(total);
    for (uint32_t round = 0; round < kRounds; round++) {
      ASSERT_EQ(Allreduce(state, inputs[round][static_cast<size_t>(rank)].data(), out.data()),
                BITRAIL_OK);
      if (rank == 0) hier[round] = out;
    }
  });
  EXPECT_EQ(hier, flat) << nodes << " nodes of " << each;
}

TEST(OnebitHier, IsTheFlatOneOfTheNodesOnEachRail) {
  for (const bitrail_scale_t scale : {BITRAIL_SCALE_SEGMENT, BITRAIL_SCALE_BLOCK}) {
    expect_flat_bits(2, 2, scale);
    expect_flat_bits(3, 2, scale);
    expect_flat_bits(3, 3, scale);
    expect_flat_bits(2, 4, scale);
  }
}

// Recorded from DeepSpeed for as many ranks as there are nodes: every rank of a node gives its
// node's input, and each rail the same vector.
void expect_recorded(const std::string& name, int each) {
  const test::Golden golden = test::ReadGolden("allreduce/" + name);
  const size_t n = golden.text.at("n");
  const int nodes = golden.text.at("world");
  const Placement placement = topology::place_blocks(nodes * each, each);
  std::mutex one_at_a_time;  // gtest's messages
  RunOnNodes(placement, "onebit_hier", [&](int rank, bitrail_comm_t comm) {
    const int node = placement.node_of(rank);
    const size_t total = n * static_cast<size_t>(each);
    ErrorState state(comm, {{total}});
    for (int when = 0; when < golden.text.at("iters").get<int>(); when++) {
      const std::vector<float> recorded = test::GoldenInput(golden, when, n, node);
      std::vector<float> in, out(total);
      for (int rail = 0; rail < each; rail++) in.insert(in.end(), recorded.begin(), recorded.end());
      ASSERT_EQ(Allreduce(state, in.data(), out.data()), BITRAIL_OK) << bitrail_last_error();
      // The magnitudes are the nodes' server scales, a chunk each; arrays where they were kept.
      const auto output = golden.floats(when, -1, "output");
      const auto worker = golden.floats(when, node, "worker_error_out");
      const size_t chunk = n / static_cast<size_t>(nodes);
      const std::lock_guard lock(one_at_a_time);
      for (const auto& one : golden.text.at("calls")) {
        if (one.at("iter") != when) continue;
        const double scale = one.at("server_scale");
        const size_t at = one.at("rank").get<size_t>() * chunk;
        for (size_t i = 0; i < total; i++)
          if (i % n >= at && i % n < at + chunk) {
            ASSERT_NEAR(std::abs(out[i]), scale, 1e-6 * scale) << i;
          }
      }
      for (size_t at = 0; at < total && output.found; at += n)
        EXPECT_LE(test::GoldenDistance(out.data() + at, output.values.data(), n, 0), 5e-6) << name;
      if (worker.found) {
        ASSERT_EQ(state->worker.size(), worker.values.size());
        EXPECT_LE(test::GoldenDistance(state->worker.data(), worker.values.data(), n, 0.1), 5e-6);
      }
    }
  });
}

TEST(OnebitHier, GivesTheRecordedNumbers) {
  expect_recorded("n4096_w2", 2);
  expect_recorded("n4096_w4", 2);
  expect_recorded("n4096_w2", 4);
  expect_recorded("special_w2", 2);
}

// A value that is not finite anywhere: refused on all ranks, nothing changed, and the next call is
// as if nothing had been.
TEST(OnebitHier, RefusesTogetherWhatIsNotFinite) {
  const Placement placement = topology::place_ranks({0, 0, 0, 1, 1});
  for (const char* name : kNames)
    for (const bitrail_scale_t scale : {BITRAIL_SCALE_SEGMENT, BITRAIL_SCALE_BLOCK})
      RunOnNodes(placement, name, [&](int rank, bitrail_comm_t comm) {
        constexpr size_t kCount = 9000;
        const OnebitLayout layout = {{kCount}, scale, BITRAIL_NORM_L2, 1024};
        ErrorState state(comm, layout), spared(comm, layout);
        const std::vector<float> good = Noise(kCount, static_cast<uint32_t>(rank));
        std::vector<float> out(kCount), other(kCount);
        for (int bad = -1; bad < 5; bad++) {
          for (const size_t where : {size_t{0}, kCount / 2, kCount - 1}) {
            if (bad < 0) break;
            const std::vector<char> before = state.saved();
            std::vector<float> in = good;
            if (bad == rank) in[where] = where == 0 ? INFINITY : NAN;
            std::fill(out.begin(), out.end(), 7.0f);
            ASSERT_EQ(Allreduce(state, in.data(), out.data()), BITRAIL_ERR_NOT_FINITE)
                << name << ": rank " << bad << " at " << where;
            ASSERT_EQ(std::count(out.begin(), out.end(), 7.0f), std::ptrdiff_t{kCount});
            ASSERT_EQ(state.saved(), before);
          }
          ASSERT_EQ(Allreduce(state, good.data(), out.data()), BITRAIL_OK) << bitrail_last_error();
          ASSERT_EQ(Allreduce(spared, good.data(), other.data()), BITRAIL_OK);
          ASSERT_EQ(out, other);
        }
      });
}

// Over many calls the sum of results follows the sum of true means.
void follows_the_mean(const std::string& name, const Placement& placement,
                      const OnebitLayout& layout) {
  constexpr uint32_t kRounds = 50;
  const size_t total = layout.total();
  const int world = placement.world_size();
  RunOnNodes(placement, name, [&](int rank, bitrail_comm_t comm) {
    ErrorState state(comm, layout);
    std::vector<float> out(total);
    std::vector<double> sent(total), got(total);
    for (uint32_t round = 0; round < kRounds; round++) {
      std::vector<float> mine;
      for (int r = 0; r < world; r++) {
        std::vector<float> in = Noise(total, 100 * round + static_cast<uint32_t>(r));
        for (size_t i = 0; i < total; i++) sent[i] += static_cast<double>(in[i]) / world;
        if (r == rank) mine = std::move(in);
      }
      ASSERT_EQ(Allreduce(state, mine.data(), out.data()), BITRAIL_OK) << bitrail_last_error();
      for (size_t i = 0; i < total; i++) got[i] += static_cast<double>(out[i]);
    }
    double difference = 0, size = 0;
    for (size_t i = 0; i < total; i++) {
      difference += (sent[i] - got[i]) * (sent[i] - got[i]);
      size += sent[i] * sent[i];
    }
    EXPECT_LT(std::sqrt(difference / size), 0.5) << name << ", rank " << rank;
    EXPECT_GT(size, 0);
  });
}

TEST(OnebitHier, ErrorFeedbackFollowsTheMean) {
  const Placement even = topology::place_blocks(4, 2);
  const Placement uneven = topology::place_ranks({0, 0, 0, 1, 1});
  for (const char* name : kNames) {
    follows_the_mean(name, even, {{5000, 40}});
    follows_the_mean(name, uneven, {{5000, 40}});
    follows_the_mean(name, uneven, {{9000}, BITRAIL_SCALE_BLOCK, BITRAIL_NORM_L1, 1024});
  }
}

TEST(OnebitHier, SixteenBitCallsGiveTheFloat32ResultRounded) {
  for (const bitrail_type_t type : {BITRAIL_FLOAT16, BITRAIL_BFLOAT16}) {
    const auto narrow = type == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
    const auto widen = type == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat;
    RunOnNodes(topology::place_blocks(4, 2), "onebit_hier", [&](int rank, bitrail_comm_t comm) {
      const OnebitLayout layout = {{9001, 300}};
      const size_t n = layout.total();
      ErrorState a(comm, layout), b(comm, layout);
      std::vector<float> in = Noise(n, static_cast<uint32_t>(rank)), expected(n);
      std::vector<uint16_t> raw(n), out(n), want(n);
      narrow(in.data(), n, raw.data());
      widen(raw.data(), n, in.data());
      ASSERT_EQ(Allreduce(a, in.data(), expected.data()), BITRAIL_OK);
      ASSERT_EQ(Allreduce(b, raw.data(), out.data(), type), BITRAIL_OK) << bitrail_last_error();
      narrow(expected.data(), n, want.data());
      EXPECT_EQ(out, want);
      EXPECT_EQ(a.saved(), b.saved()) << "error state is float32 whatever the type";
      // In place.
      ASSERT_EQ(Allreduce(a, in.data(), in.data()), BITRAIL_OK);
      ASSERT_EQ(Allreduce(b, raw.data(), raw.data(), type), BITRAIL_OK);
      narrow(in.data(), n, want.data());
      EXPECT_EQ(raw, want);
    });
  }
}

struct Hooked {
  std::vector<float> values;  // produced from, and overwritten by the consumer
  size_t offset[2];
  std::vector<int> seen;
};

TEST(OnebitHier, ProducerFeedsAndConsumerMayOverwriteIt) {
  for (const bitrail_scale_t scale : {BITRAIL_SCALE_SEGMENT, BITRAIL_SCALE_BLOCK}) {
    const auto run = [&](int rank, bitrail_comm_t comm) {
      const OnebitLayout layout = {{70000, 33}, scale, BITRAIL_NORM_L2, 1024};
      const size_t n = layout.total();
      ErrorState plain(comm, layout), hooked(comm, layout);
      std::vector<float> expected = Noise(n, static_cast<uint32_t>(rank));
      Hooked user = {expected, {0, 70000}, std::vector<int>(n)};
      for (int round = 0; round < 3; round++) {
        ASSERT_EQ(Allreduce(plain, expected.data(), expected.data()), BITRAIL_OK);
        std::fill(user.seen.begin(), user.seen.end(), 0);
        bitrail_onebit_call_t call = {sizeof(call), nullptr, nullptr, BITRAIL_FLOAT32,
                                      nullptr,      nullptr, &user};
        call.produce = [](void* u, size_t segment, size_t begin, size_t count, float* out) {
          const Hooked& h = *static_cast<Hooked*>(u);
          std::copy_n(h.values.data() + h.offset[segment] + begin, count, out);
        };
        call.consume = [](void* u, size_t segment, size_t begin, size_t count,
                          const float* values) {
          Hooked& h = *static_cast<Hooked*>(u);
          const size_t at = h.offset[segment] + begin;
          std::copy_n(values, count, h.values.data() + at);
          for (size_t i = 0; i < count; i++) h.seen[at + i]++;
        };
        ASSERT_EQ(bitrail_onebit_allreduce(hooked, &call, nullptr), BITRAIL_OK)
            << bitrail_last_error();
        EXPECT_EQ(user.values, expected);
        EXPECT_EQ(std::count(user.seen.begin(), user.seen.end(), 1), static_cast<ptrdiff_t>(n));
      }
      EXPECT_EQ(plain.saved(), hooked.saved());
    };
    RunOnNodes(topology::place_ranks({0, 1, 0, 1, 1}), "onebit_hier", run, 4096);
  }
}

TEST(OnebitHierState, LivesWhereValuesAreCoded) {
  const Placement placement = topology::place_ranks({0, 0, 0, 1, 1});
  RunOnNodes(placement, "onebit_hier", [&](int rank, bitrail_comm_t comm) {
    ErrorState state(comm, {{4096, 100}});
    const bool codes = placement.local_of(rank) < 2;
    const uint64_t padded = 4096 + 128;  // multiples of 4 * 8
    EXPECT_EQ(state->worker.size(), codes ? padded / 2 : 0);
    EXPECT_EQ(state->server.size(), codes ? padded / 4 : 0);
    double worker = 1, server = 1;
    EXPECT_EQ(bitrail_error_state_norms(state, &worker, &server), BITRAIL_OK);
    EXPECT_EQ(worker + server, 0);
  });
}

TEST(OnebitHierState, GoesOnFromWhatWasSaved) {
  const Placement placement = topology::place_ranks({0, 0, 0, 1, 1});
  for (const char* name : kNames)
    RunOnNodes(placement, name, [&](int rank, bitrail_comm_t comm) {
      ErrorState a(comm, {{3000}}), b(comm, {{3000}});
      const std::vector<float> in = Noise(3000, static_cast<uint32_t>(rank));
      std::vector<float> first(3000), second(3000), again(3000);
      ASSERT_EQ(Allreduce(a, in.data(), first.data()), BITRAIL_OK);
      const std::vector<char> saved = a.saved();
      ASSERT_EQ(Allreduce(a, in.data(), second.data()), BITRAIL_OK);
      ASSERT_EQ(bitrail_error_state_load(b, saved.data(), saved.size()), BITRAIL_OK)
          << bitrail_last_error();
      ASSERT_EQ(Allreduce(b, in.data(), again.data()), BITRAIL_OK);
      EXPECT_EQ(second, again);
      ASSERT_EQ(bitrail_error_state_reset(b), BITRAIL_OK);
      ASSERT_EQ(Allreduce(b, in.data(), again.data()), BITRAIL_OK);
      EXPECT_EQ(first, again);
    });
}

TEST(OnebitHierState, RefusesAnotherForm) {
  std::vector<std::vector<char>> saved;
  const Placement blocks = topology::place_blocks(4, 2), cyclic = topology::place_cyclic(4, 2);
  for (const char* name : {"onebit_direct", "onebit_hier", "onebit_leader"})
    RunOnNodes(blocks, name, [&](int rank, bitrail_comm_t comm) {
      ErrorState state(comm, {{4096}});
      if (rank == 2) saved.push_back(state.saved());
    });
  for (const Placement& placement : {blocks, cyclic})
    for (size_t own = 0; own < 3; own++) {
      const char* const names[] = {"onebit_direct", "onebit_hier", "onebit_leader"};
      RunOnNodes(placement, names[own], [&](int rank, bitrail_comm_t comm) {
        ErrorState state(comm, {{4096}});
        if (rank != 2) return;
        for (size_t other = 0; other < saved.size(); other++) {
          const bitrail_status_t code =
              bitrail_error_state_load(state, saved[other].data(), saved[other].size());
          // The flat form does not care for nodes.
          if (other == own && (placement == blocks || own == 0)) {
            EXPECT_EQ(code, BITRAIL_OK);
            continue;
          }
          EXPECT_EQ(code, BITRAIL_ERR_INVALID_ARGUMENT);
          EXPECT_NE(std::string(bitrail_last_error()).find(names[own]), std::string::npos)
              << bitrail_last_error();
        }
      });
    }
}

TEST(OnebitHierState, HasNoHalves) {
  RunOnNodes(topology::place_blocks(4, 2), "onebit_hier", [&](int, bitrail_comm_t comm) {
    ErrorState state(comm, {{4096}});
    std::vector<float> data(4096);
    size_t begin = 0, end = 0;
    const bitrail_onebit_call_t call = {sizeof call, data.data(), data.data(), BITRAIL_FLOAT32,
                                        nullptr,     nullptr,     nullptr};
    for (const bitrail_status_t code : {bitrail_onebit_reduce_scatter(state, &call, nullptr),
                                        bitrail_onebit_allgather(state, &call, nullptr),
                                        bitrail_onebit_chunk(state, 0, 0, &begin, &end)}) {
      EXPECT_EQ(code, BITRAIL_ERR_UNSUPPORTED);
      EXPECT_NE(std::string(bitrail_last_error()).find("onebit_allreduce:onebit_direct"),
                std::string::npos);
    }
    EXPECT_EQ(Allreduce(state, data.data(), data.data()), BITRAIL_OK) << "the state is not broken";
  });
}

TEST(OnebitHierState, IsFlatUnlessAskedFor) {
  test::World(4).run([&](int, bitrail_comm_t comm) {
    comm->placement = topology::place_blocks(4, 2);
    ErrorState state(comm, {{4096}});
    EXPECT_EQ(state->algorithm->name, "onebit_direct");
    EXPECT_EQ(state->worker.size(), 4096u);
  });
  // Named, but there is one node only: passed over.
  RunOnNodes(topology::place_blocks(4, 4), "onebit_hier", [&](int, bitrail_comm_t comm) {
    ErrorState state(comm, {{4096}});
    EXPECT_EQ(state->algorithm->name, "onebit_direct");
  });
}

TEST(Placement, FollowsTheRanksPerNode) {
  for (const int64_t given : {0, 1, 2, 3, 100}) {
    config::Settings settings;
    settings.ranks_per_node = given;
    test::World(4, settings).run([&](int, bitrail_comm_t comm) {
      const int each = given > 1 && given < 4 ? static_cast<int>(given) : 4;
      EXPECT_EQ(comm->placement, topology::place_blocks(4, each));
    });
  }
}

}  // namespace
}  // namespace bitrail
