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
    EXPECT_GT(largest, 1e-4) << segment.name;
    ExpectClose(actual, expected, 1e-4, segment.name.c_str());
  }
}

// What the momentum mask says: elements it leaves out have a gradient of exactly zero, and in every
// other row of a position or bias something has one.
TEST(Model, MaskedElementsHaveNoGradient) {
  Fixture f;
  const Layout& layout = f.model->layout();
  std::vector<float> gradient(layout.count, 1.0F);
  double loss = 0;
  ASSERT_TRUE(f.model->LossAndGradient(f.parameters.data(), f.batch, &loss, gradient.data()).ok());
  size_t masked = 0;
  for (const Segment& segment : layout.segments) {
    const std::vector<float> mask = MomentumMask(f.shape, layout, segment);
    for (size_t i = 0; i < segment.count; i++) {
      const float g = gradient[segment.offset + i];
      if (mask.empty() || mask[i] != 0) {
        EXPECT_NE(g, 0) << segment.name << " " << i;
      } else {
        EXPECT_EQ(g, 0) << segment.name << " " << i;
        masked++;
      }
    }
  }
  EXPECT_EQ(masked, 3U * 8 + 2 * 8);  // three unused positions, the keys' biases of two layers
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
