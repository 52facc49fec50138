#include "optimizers/checkpoint/content.h"

#include <cmath>
#include <set>

namespace bitrail::checkpoint {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 48;  // keeps every product below 64 bits

Status CheckTensor(const Tensor& tensor) {
  if (tensor.name.empty() || tensor.name == "__metadata__") {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: '{}' is no name for a tensor",
                   tensor.name);
  }
  if (ElementBytes(tensor.type) == 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: tensor {} has no element type",
                   tensor.name);
  }
  uint64_t count = 1;
  for (const uint64_t extent : tensor.shape) {
    if (extent > kMaxElements || (extent != 0 && count > kMaxElements / extent)) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: tensor {} has too many elements",
                     tensor.name);
    }
    count *= extent;
  }
  if (count != 0 && tensor.data == nullptr) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: the data of tensor {} is NULL",
                   tensor.name);
  }
  return {};
}

}  // namespace

size_t ElementBytes(Element type) {
  switch (type) {
    case Element::float32:
      return 4;
    case Element::float16:
    case Element::bfloat16:
      return 2;
    case Element::uint8:
      return 1;
    case Element::int64:
      return 8;
  }
  return 0;
}

uint64_t Count(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  return count;
}

Slice SliceOf(uint64_t count, int rank, int world) {
  const auto w = static_cast<uint64_t>(world), r = static_cast<uint64_t>(rank);
  // The first count % w slices are one longer.
  const uint64_t each = count / w, longer = count % w;
  const uint64_t begin = r * each + (r < longer ? r : longer);
  return {begin, begin + each + (r < longer ? 1 : 0)};
}

Status CheckContent(const Content& content) {
  if (content.optimizer.empty()) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: the optimizer has no name");
  }
  for (const auto& [name, scalar] : content.scalars) {
    const double* value = std::get_if<double>(&scalar);
    if (value != nullptr && !std::isfinite(*value)) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: scalar {} is {}", name, *value);
    }
  }
  std::set<std::string> names;
  for (const Tensor& tensor : content.tensors) {
    BITRAIL_TRY(CheckTensor(tensor));
    if (!names.insert(tensor.name).second) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: there are two tensors {}",
                     tensor.name);
    }
  }
  return {};
}

}  // namespace bitrail::checkpoint
