// The whole model: loss and gradient against the float64 reference and its central differences,
// what the position mask relies on, and that it learns.
#include "tools/train/model.h"

#include "tests/train/support.h"

namespace bitrail::train {
namespace {

using reference::Values;
using reference::Widen;

Shape SmallShape() {
  Shape shape;
  shape.layers = 2;
  shape.width = 8;
  shape.heads = 2;
  shape.positions = 9;
  shape.sequence = 6;
  shape.batch = 3;
  shape.vocabulary = 11;
  shape.masked = 2;
  return shape;
}

std::vector<Token> SomeTokens(size_t count, int64_t vocabulary) {
  Random random(3, 1);
  std::vector<Token> tokens(count);
  for (Token& token : tokens)
    token = static_cast<Token>(1 + random.Below(static_cast<uint64_t>(vocabulary - 1)));
  return tokens;
}

struct Fixture {
  Shape shape = SmallShape();
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  Batch batch;

  Fixture() {
    const Status status = Model::Create(shape, &model);
    EXPECT_TRUE(status.ok()) << status.text();
    parameters = InitialParameters(shape, model->layout(), 5);
    // Away from the start values' zeros and ones, so that every term has a gradient.
    const std::vector<float> noise = Noise(parameters.size(), 9, 0.1);
    for (size_t i = 0; i < parameters.size(); i++) parameters[i] += noise[i];
    MakeBatch(SomeTokens(400, shape.vocabulary), shape, {1, 0, 1, Part::train}, &batch);
  }
};

TEST(Model, LossMatchesReference) {
  Fixture f;
  double loss = 0;
  ASSERT_TRUE(f.model->Loss(f.parameters.data(), f.batch, &loss).ok());
  EXPECT_NEAR(loss, reference::Loss(f.shape, f.model->layout(), Widen(f.parameters), f.batch),
              1e-5);
}

// Every parameter of every tensor.
TEST(Model, GradientMatchesFiniteDifferences) {
  Fixture f;
  const Layout& layout = f.model->layout();
  std::vector<float> gradient(layout.count, std::nanf(""));
  double loss = 0;
  ASSERT_TRUE(f.model->LossAndGradient(f.parameters.data(), f.batch, &loss, gradient.data()).ok());
  const auto by_parameters = [&](const Values& w) {
    return reference::Loss(f.shape, layout, w, f.batch);
  };
  for (const Segment& segment : layout.segments) {
    std::vector<size_t> at = All(segment.count);
    for (size_t& i : at) i += segment.offset;
    const Values expected = reference::Difference(by_parameters, Widen(f.parameters), at);
    const auto first = gradient.begin() + static_cast<int64_t>(segment.offset);
    const std::vector<float> actual(first, first + static_cast<int64_t>(segment.count));
    double largest = 0;
    for (const double e : expected) largest = std::max(largest, std::abs(e));
    // A bias of the keys shifts all scores of a query alike and has no gradient at all, so compare
    // with the size of the whole tensor's.
    EXPECT_GT(largest, 1e-4) << segment.name;
    ExpectClose(actual, expected, 1e-4, segment.name.c_str());
  }
}

TEST(Model, UnusedPositionsHaveNoGradient) {
  Fixture f;
  std::vector<float> gradient(f.model->layout().count, 1.0F);
  double loss = 0;
  ASSERT_TRUE(f.model->LossAndGradient(f.parameters.data(), f.batch, &loss, gradient.data()).ok());
  const std::vector<float> mask = PositionMask(f.shape);
  ASSERT_EQ(mask.size(), static_cast<size_t>(f.shape.positions * f.shape.width));
  for (int64_t row = 0; row < f.shape.positions; row++) {
    double largest = 0;
    for (int64_t i = 0; i < f.shape.width; i++) {
      const auto at = static_cast<size_t>(row * f.shape.width + i);
      largest = std::max(largest, std::abs(double{gradient[f.model->layout().position + at]}));
      EXPECT_EQ(mask[at], row < f.shape.sequence ? 1.0F : 0.0F);
    }
    if (row < f.shape.sequence) {
      EXPECT_GT(largest, 0) << row;
    } else {
      EXPECT_EQ(largest, 0) << row;
    }
  }
}

TEST(Model, SameSeedSameNumbers) {
  Fixture a;
  Fixture b;
  EXPECT_EQ(a.parameters, b.parameters);
  std::vector<float> ga(a.parameters.size());
  std::vector<float> gb(ga.size());
  double loss_a = 0;
  double loss_b = 0;
  ASSERT_TRUE(a.model->LossAndGradient(a.parameters.data(), a.batch, &loss_a, ga.data()).ok());
  ASSERT_TRUE(b.model->LossAndGradient(b.parameters.data(), b.batch, &loss_b, gb.data()).ok());
  EXPECT_EQ(loss_a, loss_b);
  EXPECT_EQ(ga, gb);
  EXPECT_NE(a.parameters, InitialParameters(a.shape, a.model->layout(), 6));
}

// Plain gradient descent on one batch gets the loss down to almost nothing.
TEST(Model, OverfitsOneBatch) {
  Fixture f;
  std::vector<float> gradient(f.parameters.size());
  double first = 0;
  double loss = 0;
  for (int step = 0; step < 300; step++) {
    ASSERT_TRUE(
        f.model->LossAndGradient(f.parameters.data(), f.batch, &loss, gradient.data()).ok());
    if (step == 0) first = loss;
    for (size_t i = 0; i < gradient.size(); i++) f.parameters[i] -= 0.2F * gradient[i];
  }
  EXPECT_GT(first, 1.5);
  EXPECT_LT(loss, 0.05);
}

TEST(Model, ZeroLayersStillWork) {
  Shape shape = SmallShape();
  shape.layers = 0;
  std::unique_ptr<Model> model;
  ASSERT_TRUE(Model::Create(shape, &model).ok());
  const std::vector<float> w = InitialParameters(shape, model->layout(), 1);
  Batch batch;
  MakeBatch(SomeTokens(400, shape.vocabulary), shape, {1, 0, 1, Part::train}, &batch);
  double loss = 0;
  ASSERT_TRUE(model->Loss(w.data(), batch, &loss).ok());
  EXPECT_NEAR(loss, reference::Loss(shape, model->layout(), Widen(w), batch), 1e-5);
}

}  // namespace
}  // namespace bitrail::train
