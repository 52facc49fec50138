// Checkpoints that were changed after they were written: said, or harmless; never loaded wrong.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "optimizers/checkpoint/checksum.h"
#include "tests/optimizers/checkpoint_support.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

using namespace checkpoint;
using test::LoadedStep;
using test::ReadAll;
using test::SmallState;
using test::TemporaryDirectory;
using test::World;
using test::WriteAll;

constexpr int kRanks = 2;

// A checkpoint of two ranks at step 5; Open alone verifies all of it.
class Corrupt : public testing::Test {
 protected:
  Corrupt() : directory(place / "checkpoint") {
    World(kRanks).run([&](int rank, bitrail_comm_t comm) {
      ASSERT_TRUE(Save(comm, directory, SmallState(5, rank).content).ok());
    });
  }
  std::string Shard(int rank) const { return directory + "/" + ShardName(rank, kRanks, 1); }
  std::string Manifest() const { return directory + "/" + kManifestName; }

  void ExpectRefused(bitrail_status_t code, const std::string& words) {
    Checkpoint opened;
    const Status status = Open(nullptr, directory, &opened);
    EXPECT_EQ(status.code(), code) << words;
    EXPECT_NE(status.text().find(words), std::string::npos) << status.text();
  }

  TemporaryDirectory place;
  std::string directory;
};

// Every byte of every file; of the padding after a shard's header, which is all alike, a sample.
TEST_F(Corrupt, EveryFlippedByteIsSeenOrHarmless) {
  for (const std::string& path : {Manifest(), Shard(0), Shard(1)}) {
    const std::string intact = ReadAll(path);
    size_t harmless = 0;
    const size_t padding = path == Manifest() ? intact.size() : intact.find("   ");
    for (size_t at = 0; at < intact.size(); at++) {
      if (at > padding && at < 4096 && at % 64 != 0) continue;
      for (const char flip : {'\x01', '\x20', '\x80'}) {
        std::string bytes = intact;
        bytes[at] = static_cast<char>(bytes[at] ^ flip);
        WriteAll(path, bytes);
        std::string why;
        const int64_t step = LoadedStep(nullptr, directory, &why);
        ASSERT_TRUE(step == -1 || step == 5) << path << " byte " << at << ": " << why;
        ASSERT_TRUE(step == 5 || why.find(directory) != std::string::npos) << why;
        harmless += step == 5 ? 1 : 0;
      }
    }
    // White space of checkpoint.json that becomes other white space; nothing in a shard.
    EXPECT_LE(harmless, path == Manifest() ? intact.size() / 4 : 0u) << path;
    WriteAll(path, intact);
  }
  std::string why;
  EXPECT_EQ(LoadedStep(nullptr, directory, &why), 5) << why;
}

TEST_F(Corrupt, EveryTruncationIsSeen) {
  for (const std::string& path : {Manifest(), Shard(1)}) {
    const std::string intact = ReadAll(path);
    // The manifest's last byte is a line feed.
    for (size_t length = 0; length + 1 < intact.size(); length += 1 + length / 50) {
      WriteAll(path, intact.substr(0, length));
      std::string why;
      ASSERT_EQ(LoadedStep(nullptr, directory, &why), -1) << path << " cut to " << length;
      ASSERT_NE(why.find(path), std::string::npos) << why;
    }
    WriteAll(path, intact);
  }
  WriteAll(Shard(0), ReadAll(Shard(0)) + "x");
  ExpectRefused(BITRAIL_ERR_INVALID_ARGUMENT, "it was written with");
}

TEST_F(Corrupt, MissingFilesAreNamed) {
  std::filesystem::remove(Shard(1));
  ExpectRefused(BITRAIL_ERR_INVALID_ARGUMENT, "missing shards: rank-00001-of-00002.1.safetensors");
  std::filesystem::remove(Shard(0));
  ExpectRefused(BITRAIL_ERR_INVALID_ARGUMENT,
                "rank-00000-of-00002.1.safetensors, rank-00001-of-00002.1.safetensors");
  std::filesystem::remove(Manifest());
  ExpectRefused(BITRAIL_ERR_SYSTEM, "checkpoint.json: No such file");
  std::filesystem::remove_all(directory);
  ExpectRefused(BITRAIL_ERR_SYSTEM, "No such file");
}

TEST_F(Corrupt, ShardsOfOtherCheckpointsAreNotTaken) {
  const std::string other = place / "other";
  World(kRanks).run([&](int rank, bitrail_comm_t comm) {
    ASSERT_TRUE(Save(comm, other, SmallState(6, rank).content).ok());
  });
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(other + "/" + ShardName(1, kRanks, 1), Shard(1), overwrite);
  ExpectRefused(BITRAIL_ERR_INVALID_ARGUMENT, "the file was changed");
  std::filesystem::copy_file(Shard(0), Shard(1), overwrite);
  ExpectRefused(BITRAIL_ERR_INVALID_ARGUMENT, Shard(1));
}

// A writer with a valid checksum, but of a later format or nonsense.
TEST_F(Corrupt, LaterFormatsAndNonsenseAreNamed) {
  const auto rewrite = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json root = nlohmann::json::parse(ReadAll(Manifest()));
    root.erase("checksum");
    change(root);
    const std::string text = root.dump();
    root["checksum"] = ToHex(Checksum(text.data(), text.size()));
    return root.dump();
  };
  const std::string intact = ReadAll(Manifest());
  const struct {
    bitrail_status_t code;
    const char* words;
    std::function<void(nlohmann::json&)> change;
  } wrongs[] = {
      {BITRAIL_ERR_UNSUPPORTED, "format 2 of BitRail 9.9",
       [](auto& root) { root["format"] = 2, root["bitrail"] = "9.9"; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'format'", [](auto& root) { root["format"] = "1"; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'format'", [](auto& root) { root["format"] = 0; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'world_size'", [](auto& root) { root["world_size"] = -2; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'shards'", [](auto& root) { root["world_size"] = 3; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'shards'",
       [](auto& root) { root["shards"][0]["file"] = "../rank-00000-of-00002.1.safetensors"; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'step'", [](auto& root) { root["step"] = 1.5; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "scalar loss_scale",
       [](auto& root) { root["scalars"]["loss_scale"] = nullptr; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "'tensors'",
       [](auto& root) { root["tensors"][0]["dtype"] = "F8"; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "tensor exp_avg is missing or not",
       [](auto& root) { root["tensors"][1]["shape"] = {38}; }},
      {BITRAIL_ERR_INVALID_ARGUMENT, "another checkpoint's shard",
       [](auto& root) { root["tensors"].erase(1); }},
  };
  for (const auto& wrong : wrongs) {
    WriteAll(Manifest(), rewrite(wrong.change));
    ExpectRefused(wrong.code, wrong.words);
    WriteAll(Manifest(), intact);
  }
}

// What one rank sees is what all ranks return.
TEST_F(Corrupt, AllRanksReturnTheSameError) {
  std::string bytes = ReadAll(Shard(1));
  bytes.back() ^= 1;
  WriteAll(Shard(1), bytes);
  std::string texts[3];
  World(3).run([&](int rank, bitrail_comm_t comm) {
    Checkpoint opened;
    texts[rank] = Open(comm, directory, &opened).text();
  });
  EXPECT_NE(texts[0].find("rank "), std::string::npos) << texts[0];
  EXPECT_NE(texts[0].find(Shard(1)), std::string::npos) << texts[0];
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

}  // namespace
}  // namespace bitrail
