// All parameters in one flat array: named tensors one after the other, without padding. The
// gradient has the same layout, so one exchange carries everything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/shape.h"

namespace bitrail::train {

// Which decay a tensor gets: matrices and embeddings decay, biases and norms do not (BERT's rule).
enum class Group : uint8_t { decay = 0, no_decay = 1 };

struct Segment {
  std::string name;
  size_t offset = 0;  // elements
  size_t count = 0;
  Group group = Group::decay;
};

// Offsets of one encoder layer; matrices are (in, out), row-major.
struct LayerOffsets {
  size_t norm1;            // scale (D), shift (D)
  size_t qkv, qkv_bias;    // (D, 3D), (3D)
  size_t proj, proj_bias;  // (D, D), (D)
  size_t norm2;
  size_t up, up_bias;      // (D, 4D), (4D)
  size_t down, down_bias;  // (4D, D), (D)
};

struct Layout {
  std::vector<Segment> segments;
  size_t count = 0;  // all elements
  size_t token = 0;  // (V, D), also the output matrix
  size_t position = 0;
  std::vector<LayerOffsets> layers;
  size_t norm = 0;       // the last normalisation
  size_t head_bias = 0;  // (V)
};

Layout MakeLayout(const Shape& shape);

// Start values, the same on every rank with the same seed.
std::vector<float> InitialParameters(const Shape& shape, const Layout& layout, uint64_t seed);

// The momentum mask of a segment: 0 where an element never gets a gradient, 1 elsewhere; empty when
// all do. Such elements keep variance 0, and a momentum that the sign code invents for them would
// be divided by eps. They are the position rows behind shape.sequence and the keys' biases.
std::vector<float> MomentumMask(const Shape& shape, const Layout& layout, const Segment& segment);

}  // namespace bitrail::train
