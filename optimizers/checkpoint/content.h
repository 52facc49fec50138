// What a checkpoint holds, as plain data: scalars, and named tensors in the caller's memory.
//
// An optimizer fills a Content and gives it to Save (save.h). To load, it opens the checkpoint
// (load.h), looks at the scalars and the model, and reads tensors by name into its own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::checkpoint {

enum class Element : uint8_t { float32, float16, bfloat16, uint8, int64 };

// Bytes of one element.
size_t ElementBytes(Element type);

enum class Spread : uint8_t {
  replicated,  // the same bits on every rank; every rank writes its slice (SliceOf)
  per_rank     // each rank's own, of any shape; every rank writes all of its own
};

struct Tensor {
  std::string name;  // unique in a Content
  Element type = Element::float32;
  Spread spread = Spread::replicated;
  std::vector<uint64_t> shape;  // a flat tensor has one extent; no extent: one element
  const void* data =
      nullptr;  // borrowed for the call, row-major; ignored where there is no element
};

// Elements of a shape.
uint64_t Count(const std::vector<uint64_t>& shape);

using Scalar = std::variant<int64_t, double, std::string>;
using Scalars = std::map<std::string, Scalar>;

// One parameter tensor of the model: what the fingerprint compares, in order.
struct ModelTensor {
  std::string name;  // "segment 3" where the caller has no names
  uint64_t count = 0;
  bool operator==(const ModelTensor&) const = default;
};

// Everything but per-rank tensors' shapes and data is the same on all ranks; Save compares it.
struct Content {
  std::string optimizer;  // "onebit-adam"
  int64_t step = 0;
  Scalars scalars;  // doubles are finite, strings UTF-8
  std::vector<ModelTensor> model;
  std::vector<Tensor> tensors;
};

// Elements [begin, end) of a replicated tensor that rank `rank` of `world` writes.
struct Slice {
  uint64_t begin = 0, end = 0;
};
Slice SliceOf(uint64_t count, int rank, int world);

// BITRAIL_ERR_INVALID_ARGUMENT naming the tensor or scalar: no name, a name used twice, NULL data,
// too many elements, a double that is not finite.
Status CheckContent(const Content& content);

}  // namespace bitrail::checkpoint
