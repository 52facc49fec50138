#include "tools/train/parameters.h"

#include <algorithm>
#include <cmath>

#include "tools/train/random.h"

namespace bitrail::train {
namespace {

size_t Add(Layout* layout, const std::string& name, int64_t count, Group group) {
  const size_t offset = layout->count;
  layout->segments.push_back({name, offset, static_cast<size_t>(count), group});
  layout->count += static_cast<size_t>(count);
  return offset;
}

size_t AddNorm(Layout* layout, const std::string& name, int64_t width) {
  const size_t offset = Add(layout, name + ".scale", width, Group::no_decay);
  Add(layout, name + ".shift", width, Group::no_decay);
  return offset;
}

void Fill(std::vector<float>* x, size_t offset, int64_t count, double deviation, Random random) {
  for (int64_t i = 0; i < count; i++)
    (*x)[offset + static_cast<size_t>(i)] = static_cast<float>(deviation * random.Normal());
}

void FillOnes(std::vector<float>* x, size_t offset, int64_t count) {
  for (int64_t i = 0; i < count; i++) (*x)[offset + static_cast<size_t>(i)] = 1.0F;
}

// Radians a position of the wave that features 2i and 2i + 1 carry: evenly spaced over (0, pi).
double Rate(const Shape& shape, int64_t feature) {
  constexpr double kPi = 3.141592653589793;
  const int64_t waves = shape.width / 2;
  const int64_t wave = feature / 2;
  return kPi * (static_cast<double>(wave) + 0.5) / static_cast<double>(waves);
}

// Start values of the position embedding: sine and cosine waves (after Vaswani et al. 2017). With
// rates evenly spaced, different positions are nearly orthogonal, and a shift by k positions is one
// rotation of each pair of features, the same at every position.
void FillWaves(const Shape& shape, float* x, double amplitude) {
  for (int64_t p = 0; p < shape.positions; p++) {
    for (int64_t i = 0; i < shape.width; i++) {
      const double angle = static_cast<double>(p) * Rate(shape, i);
      x[p * shape.width + i] =
          static_cast<float>(amplitude * (i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
}

// Start values of the first layer's queries and keys: the key of position p is made like the query
// of position p - k, so head 0 starts out looking at its left neighbour (k = -1), head 1 at its
// right one, heads 2 and 3 at the next but one, and so on. A run of a few hundred steps does not
// get off the unigram plateau when it has to find the neighbours from noise; all of it stays
// trainable.
void FillNeighbours(const Shape& shape, float* qkv, double factor) {
  const int64_t d = shape.width;
  for (int64_t h = 0; h < shape.heads; h++) {
    const int64_t k = (h % 2 == 0 ? -1 : 1) * (h / 2 + 1);
    for (int64_t i = 0; i + 1 < d; i += 2) {
      const double angle = static_cast<double>(k) * Rate(shape, i);
      const auto c = static_cast<float>(std::cos(angle));
      const auto s = static_cast<float>(std::sin(angle));
      float* sine = qkv + i * 3 * d;
      float* cosine = sine + 3 * d;
      for (int64_t j = h * shape.head_width(); j < (h + 1) * shape.head_width(); j++) {
        sine[j] *= static_cast<float>(factor);
        cosine[j] *= static_cast<float>(factor);
        sine[d + j] = sine[j] * c + cosine[j] * s;
        cosine[d + j] = cosine[j] * c - sine[j] * s;
      }
    }
  }
}

}  // namespace

Layout MakeLayout(const Shape& shape) {
  const int64_t d = shape.width;
  Layout layout;
  layout.token = Add(&layout, "embedding.token", shape.vocabulary * d, Group::decay);
  layout.position = Add(&layout, "embedding.position", shape.positions * d, Group::decay);
  for (int64_t l = 0; l < shape.layers; l++) {
    const std::string prefix = "layer." + std::to_string(l) + ".";
    LayerOffsets o = {};
    o.norm1 = AddNorm(&layout, prefix + "attention.norm", d);
    o.qkv = Add(&layout, prefix + "attention.qkv", d * 3 * d, Group::decay);
    o.qkv_bias = Add(&layout, prefix + "attention.qkv.bias", 3 * d, Group::no_decay);
    o.proj = Add(&layout, prefix + "attention.output", d * d, Group::decay);
    o.proj_bias = Add(&layout, prefix + "attention.output.bias", d, Group::no_decay);
    o.norm2 = AddNorm(&layout, prefix + "mlp.norm", d);
    o.up = Add(&layout, prefix + "mlp.up", d * shape.hidden(), Group::decay);
    o.up_bias = Add(&layout, prefix + "mlp.up.bias", shape.hidden(), Group::no_decay);
    o.down = Add(&layout, prefix + "mlp.down", shape.hidden() * d, Group::decay);
    o.down_bias = Add(&layout, prefix + "mlp.down.bias", d, Group::no_decay);
    layout.layers.push_back(o);
  }
  layout.norm = AddNorm(&layout, "head.norm", d);
  layout.head_bias = Add(&layout, "head.bias", shape.vocabulary, Group::no_decay);
  return layout;
}

std::vector<float> InitialParameters(const Shape& shape, const Layout& layout, uint64_t seed) {
  constexpr uint64_t kStream = 0x70617261;  // apart from the batches' streams
  std::vector<float> x(layout.count, 0.0F);
  uint64_t tensor = 0;
  const auto fill = [&](size_t offset, int64_t count, double deviation) {
    Fill(&x, offset, count, deviation, Random(seed, kStream, tensor++));
  };
  const int64_t d = shape.width;
  const double narrow = 1 / std::sqrt(static_cast<double>(d));
  const double wide = 1 / std::sqrt(static_cast<double>(shape.hidden()));
  // Two branches a layer add to the residual stream: keep its variance independent of depth.
  const double branch = 1 / std::sqrt(2.0 * static_cast<double>(shape.layers));
  fill(layout.token, shape.vocabulary * d, 0.5 * narrow);
  FillWaves(shape, x.data() + layout.position, narrow);
  for (const LayerOffsets& o : layout.layers) {
    FillOnes(&x, o.norm1, d);
    fill(o.qkv, d * 3 * d, narrow);
    fill(o.proj, d * d, narrow * branch);
    FillOnes(&x, o.norm2, d);
    fill(o.up, d * shape.hidden(), narrow);
    fill(o.down, shape.hidden() * d, wide * branch);
  }
  if (shape.layers > 0) FillNeighbours(shape, x.data() + layout.layers[0].qkv, 1.5);
  FillOnes(&x, layout.norm, d);
  return x;
}

std::vector<float> MomentumMask(const Shape& shape, const Layout& layout, const Segment& segment) {
  std::vector<float> mask;
  const auto d = static_cast<size_t>(shape.width);
  if (segment.offset == layout.position && shape.sequence < shape.positions) {
    mask.assign(segment.count, 0.0F);
    FillOnes(&mask, 0, shape.sequence * shape.width);
  }
  for (const LayerOffsets& o : layout.layers) {
    if (segment.offset != o.qkv_bias) continue;
    mask.assign(segment.count, 1.0F);
    std::fill_n(mask.begin() + shape.width, d, 0.0F);
  }
  return mask;
}

}  // namespace bitrail::train
