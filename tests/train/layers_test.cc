// Each layer's forward pass against plain float64 loops, its gradient against central differences
// of them: the scalar is the dot product of the output with a fixed random tensor dy.
#include "tests/train/support.h"
#include "tools/train/attention.h"
#include "tools/train/gemm.h"
#include "tools/train/primitives.h"

namespace bitrail::train {
namespace {

using reference::Difference;
using reference::Values;
using reference::Widen;

constexpr double kForward = 2e-6;
constexpr double kGradient = 2e-5;

TEST(Gemm, TransposesAndStrides) {
  const std::vector<float> a = Noise(3 * 5, 1);
  const std::vector<float> b = Noise(4 * 5, 2);
  // c (3, 4 of 6) = 2 a b^T + c with a (3, 5), b (4, 5).
  std::vector<float> c(3 * 6, 1.0F);
  Gemm(3, 4, 5, 2, {a.data(), 5}, {b.data(), 5, true}, 1, c.data(), 6);
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 6; j++) {
      double sum = 1;
      for (int k = 0; k < 5 && j < 4; k++) sum += 2.0 * a[i * 5 + k] * b[j * 5 + k];
      EXPECT_NEAR(c[i * 6 + j], sum, 1e-5) << i << " " << j;
    }
  }
}

TEST(Linear, MatchesReference) {
  const Device device;
  const LinearSize size = {5, 4, 3};
  const std::vector<float> x = Noise(20, 1);
  const std::vector<float> w = Noise(12, 2);
  const std::vector<float> bias = Noise(3, 3);
  const std::vector<float> dy = Noise(15, 4);
  const auto f = [&](const Values& xs, const Values& ws, const Values& bs) {
    return reference::Linear(xs, ws.data(), bs.data(), 5, 4, 3);
  };
  std::vector<float> y(15);
  LinearForward(size, x.data(), w.data(), bias.data(), y.data());
  ExpectClose(y, f(Widen(x), Widen(w), Widen(bias)), kForward, "y");

  std::vector<float> dx(20);
  std::vector<float> dw(12);
  std::vector<float> dbias(3);
  LinearBackward(size, x.data(), w.data(), dy.data(), dx.data(), dw.data(), dbias.data());
  const auto by_x = [&](const Values& v) { return Dot(f(v, Widen(w), Widen(bias)), dy); };
  const auto by_w = [&](const Values& v) { return Dot(f(Widen(x), v, Widen(bias)), dy); };
  const auto by_bias = [&](const Values& v) { return Dot(f(Widen(x), Widen(w), v), dy); };
  ExpectClose(dx, Difference(by_x, Widen(x), All(20)), kGradient, "dx");
  ExpectClose(dw, Difference(by_w, Widen(w), All(12)), kGradient, "dw");
  ExpectClose(dbias, Difference(by_bias, Widen(bias), All(3)), kGradient, "dbias");
}

TEST(LayerNorm, MatchesReference) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kWidth = 20;
  Device device;
  LayerNorm norm(&device, kRows, kWidth);
  const std::vector<float> x = Noise(kRows * kWidth, 1);
  const std::vector<float> factors = Noise(2 * kWidth, 2);
  const std::vector<float> dy = Noise(kRows * kWidth, 3);
  std::vector<float> y(x.size());
  std::vector<float> mean(kRows);
  std::vector<float> variance(kRows);
  norm.Forward(x.data(), factors.data(), y.data(), mean.data(), variance.data());
  ExpectClose(y, reference::LayerNorm(Widen(x), Widen(factors).data(), kWidth), kForward, "y");

  std::vector<float> dx = dy;  // in place, as the model uses it
  std::vector<float> dfactors(factors.size());
  norm.Backward(x.data(), factors.data(), mean.data(), variance.data(), dx.data(), dx.data(),
                dfactors.data());
  const auto by_x = [&](const Values& v) {
    return Dot(reference::LayerNorm(v, Widen(factors).data(), kWidth), dy);
  };
  const auto by_factors = [&](const Values& v) {
    return Dot(reference::LayerNorm(Widen(x), v.data(), kWidth), dy);
  };
  ExpectClose(dx, Difference(by_x, Widen(x), All(x.size())), kGradient, "dx");
  ExpectClose(dfactors, Difference(by_factors, Widen(factors), All(factors.size())), kGradient,
              "dfactors");
}

TEST(Softmax, MatchesReference) {
  Device device;
  Softmax softmax(&device, 3, 7);
  const std::vector<float> x = Noise(21, 1, 3);
  const std::vector<float> dy = Noise(21, 2);
  std::vector<float> p = x;
  softmax.Forward(p.data());
  ExpectClose(p, reference::Softmax(Widen(x), 7), kForward, "p");
  std::vector<float> dx = dy;
  softmax.Backward(p.data(), dx.data());
  const auto by_x = [&](const Values& v) { return Dot(reference::Softmax(v, 7), dy); };
  ExpectClose(dx, Difference(by_x, Widen(x), All(21)), kGradient, "dx");
}

TEST(Gelu, MatchesReference) {
  Device device;
  Gelu gelu(&device, 50);
  const std::vector<float> x = Noise(50, 1, 2);
  const std::vector<float> dy = Noise(50, 2);
  std::vector<float> y(50);
  gelu.Forward(x.data(), y.data());
  ExpectClose(y, reference::Gelu(Widen(x)), kForward, "y");
  std::vector<float> dx = dy;
  gelu.Backward(x.data(), dx.data(), dx.data());
  const auto by_x = [&](const Values& v) { return Dot(reference::Gelu(v), dy); };
  ExpectClose(dx, Difference(by_x, Widen(x), All(50)), kGradient, "dx");
}

TEST(Attention, MatchesReference) {
  Device device;
  Shape shape;
  shape.width = 6;
  shape.heads = 2;
  shape.sequence = 5;
  shape.batch = 2;
  Attention attention(&device, shape);
  const std::vector<float> qkv = Noise(2 * 5 * 18, 1);
  const std::vector<float> dout = Noise(2 * 5 * 6, 2);
  std::vector<float> p(2 * 2 * 5 * 5);
  std::vector<float> out(dout.size());
  attention.Forward(qkv.data(), p.data(), out.data());
  ExpectClose(out, reference::Attention(shape, Widen(qkv)), kForward, "out");
  std::vector<float> dqkv(qkv.size());
  attention.Backward(qkv.data(), p.data(), dout.data(), dqkv.data());
  const auto by_qkv = [&](const Values& v) { return Dot(reference::Attention(shape, v), dout); };
  ExpectClose(dqkv, Difference(by_qkv, Widen(qkv), All(qkv.size())), kGradient, "dqkv");
}

}  // namespace
}  // namespace bitrail::train
