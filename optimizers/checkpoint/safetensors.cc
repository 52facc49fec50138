#include "optimizers/checkpoint/safetensors.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "optimizers/checkpoint/checksum.h"
#include "optimizers/checkpoint/json_text.h"

namespace bitrail::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kAlign = 4096;  // of the data in the file: a page
constexpr uint64_t kMaxBytes = uint64_t{1} << 52;
constexpr int kMaxWorld = 1 << 20;
constexpr const char* kMetadata = "__metadata__";

struct TypeName {
  Element type;
  const char* name;
};
constexpr TypeName kTypes[] = {{Element::float32, "F32"},
                               {Element::float16, "F16"},
                               {Element::bfloat16, "BF16"},
                               {Element::uint8, "U8"},
                               {Element::int64, "I64"}};

// A number as the metadata hold it: decimal digits.
bool FromDigits(const json& metadata, const std::string& key, uint64_t limit, uint64_t* value) {
  std::string text;
  if (!GetString(metadata, key.c_str(), &text)) return false;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && *value <= limit;
}

bool ReadChecks(const json& metadata, const std::string& name, ShardTensor* tensor) {
  std::string text;
  const uint64_t pieces = Pieces(tensor->bytes);
  if (!GetString(metadata, ("xxh3 " + name).c_str(), &text)) return false;
  if (text.size() % 16 != 0 || text.size() / 16 != pieces) return false;
  tensor->checks.resize(pieces);
  for (uint64_t i = 0; i < pieces; i++) {
    if (!FromHex(std::string_view(text).substr(i * 16, 16), &tensor->checks[i])) return false;
  }
  return true;
}

// Bytes of a tensor of this type and shape; false: too many.
bool ShapeBytes(const ShardTensor& tensor, uint64_t* bytes) {
  *bytes = ElementBytes(tensor.type);
  for (const uint64_t extent : tensor.shape) {
    if (extent != 0 && *bytes > kMaxBytes / extent) return false;
    *bytes *= extent;
  }
  return true;
}

Status ParseTensor(const std::string& name, const json& entry, const json& metadata,
                   ShardTensor* tensor) {
  tensor->name = name;
  std::string type;
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
  if (!GetString(entry, "dtype", &type) || !ElementFromName(type, &tensor->type)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "tensor {}: unknown dtype '{}'", name, type);
  }
  if (!GetUnsignedList(entry, "shape", &tensor->shape) || !ShapeBytes(*tensor, &bytes) ||
      !GetUnsignedList(entry, "data_offsets", &offsets) || offsets.size() != 2 ||
      offsets[0] > kMaxBytes || offsets[1] < offsets[0] || offsets[1] - offsets[0] != bytes) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "tensor {}: shape and data_offsets do not fit",
                   name);
  }
  tensor->at = offsets[0];
  tensor->bytes = bytes;
  if (!FromDigits(metadata, "begin " + name, kMaxBytes, &tensor->begin) ||
      !ReadChecks(metadata, name, tensor)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "tensor {}: begin or checksums are missing", name);
  }
  return {};
}

}  // namespace

const char* ElementName(Element type) {
  for (const TypeName& one : kTypes) {
    if (one.type == type) return one.name;
  }
  return nullptr;
}

bool ElementFromName(std::string_view name, Element* type) {
  for (const TypeName& one : kTypes) {
    if (one.name != name) continue;
    *type = one.type;
    return true;
  }
  return false;
}

void LayOut(ShardHeader* header) {
  const auto larger = [](const ShardTensor& a, const ShardTensor& b) {
    return ElementBytes(a.type) > ElementBytes(b.type);
  };
  std::stable_sort(header->tensors.begin(), header->tensors.end(), larger);
  header->data_bytes = 0;
  for (ShardTensor& tensor : header->tensors) {
    tensor.at = header->data_bytes;
    tensor.bytes = Count(tensor.shape) * ElementBytes(tensor.type);
    tensor.checks.assign(Pieces(tensor.bytes), 0);
    header->data_bytes += tensor.bytes;
  }
}

Status BuildHeader(const ShardHeader& header, std::string* text) {
  json root = json::object(), metadata = json::object();
  metadata["rank"] = std::to_string(header.rank);
  metadata["world_size"] = std::to_string(header.world_size);
  metadata["generation"] = std::to_string(header.generation);
  for (const ShardTensor& tensor : header.tensors) {
    root[tensor.name] = {{"dtype", ElementName(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {tensor.at, tensor.at + tensor.bytes}}};
    std::string checks;
    for (const uint64_t check : tensor.checks) checks += ToHex(check);
    metadata["xxh3 " + tensor.name] = std::move(checks);
    metadata["begin " + tensor.name] = std::to_string(tensor.begin);
  }
  root[kMetadata] = std::move(metadata);
  std::string body;
  BITRAIL_TRY(DumpJson(root, -1, &body));
  if (body.size() > kMaxJsonBytes - kAlign) {
    return failure(
        BITRAIL_ERR_INVALID_ARGUMENT,
        "checkpoint: a shard header of {} bytes, at most {} are possible; use more ranks "
        "or fewer tensors",
        body.size(), kMaxJsonBytes - kAlign);
  }
  body.resize((8 + body.size() + kAlign - 1) / kAlign * kAlign - 8, ' ');
  text->clear();
  for (int i = 0; i < 8; i++) text->push_back(static_cast<char>(body.size() >> (8 * i) & 0xff));
  *text += body;
  return {};
}

Status ParseHeader(std::string_view text, ShardHeader* header) {
  *header = ShardHeader();
  json root;
  BITRAIL_TRY(ParseJson(text, &root));
  uint64_t rank = 0, world = 0;
  const json metadata = root.is_object() ? root.value(kMetadata, json()) : json();
  if (!FromDigits(metadata, "rank", kMaxWorld, &rank) ||
      !FromDigits(metadata, "world_size", kMaxWorld, &world) || rank >= world ||
      !FromDigits(metadata, "generation", UINT64_MAX, &header->generation)) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "rank, world_size or generation are missing");
  }
  header->rank = static_cast<int>(rank);
  header->world_size = static_cast<int>(world);
  for (const auto& [name, entry] : root.items()) {
    if (name == kMetadata) continue;
    header->tensors.emplace_back();
    BITRAIL_TRY(ParseTensor(name, entry, metadata, &header->tensors.back()));
  }
  const auto earlier = [](const ShardTensor& a, const ShardTensor& b) {
    return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
  };
  std::sort(header->tensors.begin(), header->tensors.end(), earlier);
  for (const ShardTensor& tensor : header->tensors) {
    if (tensor.at != header->data_bytes || tensor.bytes > kMaxBytes - tensor.at) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "tensor {}: its bytes leave a hole or overlap",
                     tensor.name);
    }
    header->data_bytes += tensor.bytes;
  }
  return {};
}

}  // namespace bitrail::checkpoint
