// A kind of operation that the runtime has never heard of goes through builder, verifier, drawings
// and simulator: a module's matrix product whose result is summed over two ranks while the next
// product runs on another lane.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/schedule/draw.h"
#include "runtime/schedule/simulate.h"
#include "runtime/schedule/verify.h"
#include "tests/schedule/worlds.h"

namespace bitrail::schedule {
namespace {

const OperationKind kProduct = {"product", Meaning::opaque};
constexpr double kMicrosecondsARow = 2.5;

double product_cost(const Schedule&, const Operation& operation, const Binding&) {
  return kMicrosecondsARow * static_cast<double>(operation.attributes[0]);
}

constexpr Symbol kWeights = 2;  // a symbol of the module's own
constexpr int64_t kRows = 40;

// Two halves of the output: product of each half, then its exchange.
Schedule layer(int rank) {
  Builder builder("layer", rank, 2);
  const BufferId x = builder.buffer({"x", Role::input, kDataUnit, kElements, 1, 1, 1});
  const BufferId weights =
      builder.buffer({"weights", Role::external, kDataUnit, kWeights, 1, 1, 1});
  const BufferId own = builder.buffer({"own", Role::scratch, kDataUnit, kElements, 1, 1, 1});
  const BufferId other = builder.buffer({"other", Role::scratch, kDataUnit, kElements, 1, 1, 1});
  const BufferId y = builder.buffer({"y", Role::output, kDataUnit, kElements, 1, 1, 1});
  for (uint32_t half = 0; half < 2; half++) {
    Operation product;
    product.kind = &kProduct;
    product.lane = 1;
    product.reads = {{x, 0, 0, 1, half, 2}, {weights, 0, 0, 1, 0, 1}};
    product.writes = {{own, 0, 0, 1, half, 2}};
    product.attributes = {kRows};
    builder.add(product);
    builder.recv(1 - rank, half, {other, 0, 0, 1, half, 2});
    builder.send(1 - rank, half, {own, 0, 0, 1, half, 2});
    builder.add(kReduce, {{own, 0, 0, 1, half, 2}, {other, 0, 0, 1, half, 2}},
                {{y, 0, 0, 1, half, 2}});
  }
  return builder.finish();
}

struct Extension : testing::Test {
  std::vector<Schedule> ranks = {layer(0), layer(1)};
  Binding binding;
  Extension() { binding.counts = {64, 0, 256}; }
};

TEST_F(Extension, BuilderOrdersIt) {
  const std::vector<Operation>& o = ranks[0].operations;
  EXPECT_EQ(o[2].after, std::vector<OperationId>{0});  // the send waits for its half's product
  EXPECT_TRUE(o[4].after.empty());                     // the second product for nothing
}

TEST_F(Extension, VerifierChecksAllButItsNumbers) {
  EXPECT_EQ(test::first(verify(ranks, binding, {Collective::allreduce, 0})), "none");
  std::vector<Schedule> spoilt = ranks;
  spoilt[1].operations[2].after.clear();
  EXPECT_NE(test::first(verify(spoilt, binding, {Collective::allreduce, 0})), "none");
  spoilt = ranks;
  spoilt[0].operations[0].writes[0].piece = 1;  // the first half is never written
  EXPECT_NE(test::first(verify(spoilt, binding, {Collective::allreduce, 0})), "none");
}

TEST_F(Extension, DrawingsShowIt) {
  EXPECT_NE(draw_text(ranks[0]).find("product"), std::string::npos);
  const Timeline timeline = unit_timeline(ranks);
  EXPECT_NE(draw_chrome(ranks, timeline).find("\"product\""), std::string::npos);
  EXPECT_NE(draw_svg(ranks, timeline).find("product"), std::string::npos);
}

TEST_F(Extension, SimulatorTakesItsCost) {
  CostModel model;
  model.alpha = 10;
  model.beta = 0;
  model.gamma = 0;
  model.kinds[&kProduct] = product_cost;
  // Two products after each other on lane 1; the first one's exchange runs meanwhile.
  EXPECT_NEAR(simulate(ranks, binding, model).microseconds,
              2 * kMicrosecondsARow * static_cast<double>(kRows) + 10, 1e-9);
  model.kinds.clear();
  EXPECT_NEAR(simulate(ranks, binding, model).microseconds, 10, 1e-9);
}

}  // namespace
}  // namespace bitrail::schedule
