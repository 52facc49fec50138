#include "optimizers/checkpoint/manifest.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "optimizers/checkpoint/checksum.h"
#include "optimizers/checkpoint/json_text.h"
#include "optimizers/checkpoint/safetensors.h"

namespace bitrail::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxWorld = 1 << 20;
constexpr const char* kChecksum = "checksum";

json ToJson(const Manifest& manifest) {
  json root = {{"format", kFormat},
               {"bitrail", manifest.version},
               {"optimizer", manifest.optimizer},
               {"step", manifest.step},
               {"world_size", manifest.world_size},
               {"generation", manifest.generation}};
  root["scalars"] = json::object();
  for (const auto& [name, scalar] : manifest.scalars) {
    std::visit([&root, &name = name](const auto& value) { root["scalars"][name] = value; }, scalar);
  }
  root["model"] = json::array();
  for (const ModelTensor& tensor : manifest.model) {
    root["model"].push_back({{"name", tensor.name}, {"count", tensor.count}});
  }
  root["tensors"] = json::array();
  for (const TensorInfo& tensor : manifest.tensors) {
    json entry = {{"name", tensor.name}, {"dtype", ElementName(tensor.type)}};
    if (tensor.spread == Spread::replicated) entry["shape"] = tensor.shape;
    root["tensors"].push_back(std::move(entry));
  }
  root["shards"] = json::array();
  for (size_t rank = 0; rank < manifest.shards.size(); rank++) {
    const ShardInfo& shard = manifest.shards[rank];
    root["shards"].push_back(
        {{"file", ShardName(static_cast<int>(rank), manifest.world_size, manifest.generation)},
         {"bytes", shard.bytes},
         {"header", ToHex(shard.header)}});
  }
  return root;
}

Status Wrong(const char* what) {
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} is missing or makes no sense", what);
}

Status ParseScalars(const json& root, Scalars* scalars) {
  const auto found = root.find("scalars");
  if (found == root.end() || !found->is_object()) return Wrong("'scalars'");
  for (const auto& [name, value] : found->items()) {
    if (value.is_number_float()) {
      (*scalars)[name] = value.get<double>();
    } else if (value.is_string()) {
      (*scalars)[name] = value.get<std::string>();
    } else if (value.is_number_integer() &&
               (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX)) {
      (*scalars)[name] = value.get<int64_t>();
    } else {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "scalar {} is neither number nor string", name);
    }
  }
  return {};
}

Status ParseTensors(const json& root, Manifest* manifest) {
  const json* model = GetList(root, "model");
  if (model == nullptr) return Wrong("'model'");
  for (const json& entry : *model) {
    ModelTensor& tensor = manifest->model.emplace_back();
    if (!GetString(entry, "name", &tensor.name) || !GetUnsigned(entry, "count", &tensor.count)) {
      return Wrong("an entry of 'model'");
    }
  }
  const json* tensors = GetList(root, "tensors");
  if (tensors == nullptr) return Wrong("'tensors'");
  for (const json& entry : *tensors) {
    TensorInfo& tensor = manifest->tensors.emplace_back();
    std::string type;
    if (!GetString(entry, "name", &tensor.name) || !GetString(entry, "dtype", &type) ||
        !ElementFromName(type, &tensor.type)) {
      return Wrong("an entry of 'tensors'");
    }
    tensor.spread = entry.contains("shape") ? Spread::replicated : Spread::per_rank;
    if (tensor.spread == Spread::replicated && !GetUnsignedList(entry, "shape", &tensor.shape)) {
      return Wrong("a shape in 'tensors'");
    }
  }
  return {};
}

Status ParseShards(const json& root, Manifest* manifest) {
  const json* shards = GetList(root, "shards");
  if (shards == nullptr || shards->size() != static_cast<size_t>(manifest->world_size)) {
    return Wrong("'shards'");
  }
  for (const json& entry : *shards) {
    const std::string name = ShardName(static_cast<int>(manifest->shards.size()),
                                       manifest->world_size, manifest->generation);
    ShardInfo& shard = manifest->shards.emplace_back();
    std::string file, header;
    if (!GetString(entry, "file", &file) || file != name ||
        !GetUnsigned(entry, "bytes", &shard.bytes) || !GetString(entry, "header", &header) ||
        !FromHex(header, &shard.header)) {
      return Wrong("an entry of 'shards'");
    }
  }
  return {};
}

Status CheckFormat(const json& root) {
  uint64_t format = 0;
  std::string version = "unknown";
  if (!GetUnsigned(root, "format", &format) || format == 0) return Wrong("'format'");
  (void)GetString(root, "bitrail", &version);
  if (format <= kFormat) return {};
  return failure(BITRAIL_ERR_UNSUPPORTED,
                 "format {} of BitRail {}; this BitRail {} reads formats up to {}: use a later one",
                 format, version, bitrail_version(), kFormat);
}

// The body's own checksum is over its shortest text, so that white space does not matter.
Status CheckChecksum(json* root) {
  std::string text;
  uint64_t expected = 0;
  if (!GetString(*root, kChecksum, &text) || !FromHex(text, &expected)) return Wrong("'checksum'");
  root->erase(kChecksum);
  BITRAIL_TRY(DumpJson(*root, -1, &text));
  if (Checksum(text.data(), text.size()) == expected) return {};
  return Status(BITRAIL_ERR_INVALID_ARGUMENT, "the checksum does not fit: the file was changed");
}

}  // namespace

std::string ShardName(int rank, int world_size, uint64_t generation) {
  return fmt::format("rank-{:05}-of-{:05}.{}.safetensors", rank, world_size, generation);
}

bool GenerationOf(std::string_view name, uint64_t* generation) {
  constexpr std::string_view kFront = "rank-", kMiddle = "-of-", kBack = ".safetensors";
  const char* end = name.data() + name.size();
  const char* at = name.data();
  const auto skip = [&at, end](std::string_view text) {
    if (!std::string_view(at, end).starts_with(text)) return false;
    at += text.size();
    return true;
  };
  const auto number = [&at, end](auto* value) {
    const auto [stop, error] = std::from_chars(at, end, *value);
    at = stop;
    return error == std::errc();
  };
  unsigned rank = 0, world = 0;
  return skip(kFront) && number(&rank) && skip(kMiddle) && number(&world) && skip(".") &&
         number(generation) && skip(kBack) && at == end;
}

Manifest Describe(const Content& content, int world_size) {
  Manifest manifest;
  manifest.version = bitrail_version();
  manifest.optimizer = content.optimizer;
  manifest.step = content.step;
  manifest.world_size = world_size;
  manifest.scalars = content.scalars;
  manifest.model = content.model;
  for (const Tensor& tensor : content.tensors) {
    const bool whole = tensor.spread == Spread::replicated;
    manifest.tensors.push_back(
        {tensor.name, tensor.type, tensor.spread, whole ? tensor.shape : std::vector<uint64_t>()});
  }
  return manifest;
}

Status Fingerprint(const Manifest& manifest, uint64_t* checksum) {
  std::string text;
  BITRAIL_TRY(DumpJson(ToJson(manifest), -1, &text));
  *checksum = Checksum(text.data(), text.size());
  return {};
}

Status BuildManifest(const Manifest& manifest, std::string* text) {
  json root = ToJson(manifest);
  BITRAIL_TRY(DumpJson(root, -1, text));
  root[kChecksum] = ToHex(Checksum(text->data(), text->size()));
  BITRAIL_TRY(DumpJson(root, 1, text));
  *text += '\n';
  return {};
}

Status ParseManifest(std::string_view text, Manifest* manifest) {
  *manifest = Manifest();
  json root;
  BITRAIL_TRY(ParseJson(text, &root));
  if (!root.is_object()) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "not a JSON object");
  BITRAIL_TRY(CheckFormat(root));
  BITRAIL_TRY(CheckChecksum(&root));
  uint64_t world = 0;
  if (!GetUnsigned(root, "world_size", &world) || world == 0 || world > kMaxWorld) {
    return Wrong("'world_size'");
  }
  manifest->world_size = static_cast<int>(world);
  const auto step = root.find("step");
  if (step == root.end() || !step->is_number_integer()) return Wrong("'step'");
  manifest->step = step->get<int64_t>();
  if (!GetString(root, "bitrail", &manifest->version) ||
      !GetString(root, "optimizer", &manifest->optimizer) ||
      !GetUnsigned(root, "generation", &manifest->generation)) {
    return Wrong("'bitrail', 'optimizer' or 'generation'");
  }
  BITRAIL_TRY(ParseScalars(root, &manifest->scalars));
  BITRAIL_TRY(ParseTensors(root, manifest));
  return ParseShards(root, manifest);
}

}  // namespace bitrail::checkpoint
