// checkpoint.json and the header of a shard. What is accepted is consistent, and comes back the
// same when it is written again.
#include <cstdlib>
#include <string>

#include "optimizers/checkpoint/checksum.h"
#include "optimizers/checkpoint/json_text.h"
#include "optimizers/checkpoint/manifest.h"
#include "optimizers/checkpoint/safetensors.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::checkpoint;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

ShardHeader small_header() {
  ShardHeader header;
  header.rank = 1, header.world_size = 2, header.generation = 7;
  header.tensors = {{.name = "a", .type = Element::float32, .shape = {2, 3}, .begin = 6},
                    {.name = "b", .type = Element::uint8, .shape = {0}},
                    {.name = "c", .type = Element::bfloat16, .shape = {kPiece}}};
  LayOut(&header);
  return header;
}

Manifest small_manifest() {
  Manifest manifest;
  manifest.version = "0.1.0", manifest.optimizer = "onebit-adam", manifest.step = -5;
  manifest.world_size = 2, manifest.generation = 7;
  manifest.scalars = {{"scale", 0.5}, {"interval", int64_t{-3}}, {"compat", "deepspeed"}};
  manifest.model = {{"weight", 12}, {"bias", 3}};
  manifest.tensors = {{"a", Element::float32, Spread::replicated, {2, 6}},
                      {"c", Element::bfloat16, Spread::per_rank, {}}};
  manifest.shards = {{4096, 1}, {8192, 2}};
  return manifest;
}

void check_header(std::string_view text) {
  ShardHeader header, again;
  if (!ParseHeader(text, &header).ok()) return;
  require(header.rank >= 0 && header.rank < header.world_size);
  uint64_t end = 0;
  for (const ShardTensor& tensor : header.tensors) {
    require(tensor.at == end && tensor.checks.size() == Pieces(tensor.bytes));
    require(tensor.bytes == Count(tensor.shape) * ElementBytes(tensor.type));
    end += tensor.bytes;
  }
  require(end == header.data_bytes);
  std::string built;
  if (!BuildHeader(header, &built).ok()) return;  // too large
  require(ParseHeader(std::string_view(built).substr(8), &again).ok());
  require(again.data_bytes == header.data_bytes && again.tensors.size() == header.tensors.size());
}

void check_manifest(std::string_view text) {
  Manifest manifest, again;
  if (!ParseManifest(text, &manifest).ok()) return;
  require(manifest.shards.size() == static_cast<size_t>(manifest.world_size));
  std::string built;
  require(BuildManifest(manifest, &built).ok());
  require(ParseManifest(built, &again).ok());
  require(again.scalars == manifest.scalars && again.model == manifest.model &&
          again.tensors == manifest.tensors && again.step == manifest.step);
}

// The same with a checksum that fits, so that what lies behind it is reached.
void check_signed_manifest(std::string_view text) {
  nlohmann::json root;
  if (!ParseJson(text, &root).ok() || !root.is_object()) return;
  root.erase("checksum");
  std::string body;
  require(DumpJson(root, -1, &body).ok());
  root["checksum"] = ToHex(Checksum(body.data(), body.size()));
  require(DumpJson(root, -1, &body).ok());
  check_manifest(body);
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  std::string header, manifest;
  require(BuildHeader(small_header(), &header).ok());
  require(BuildManifest(small_manifest(), &manifest).ok());
  header = header.substr(8, header.find_last_not_of(' ') - 7);
  return {bytes_of(header), bytes_of(manifest)};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_header(text);
  check_manifest(text);
  check_signed_manifest(text);
  uint64_t generation = 0;
  (void)GenerationOf(text, &generation);
  return 0;
}
