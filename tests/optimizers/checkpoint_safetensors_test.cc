// Shards are safetensors files: bytes written by hand, and a reader that is not ours.
#include "optimizers/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "optimizers/checkpoint/json_text.h"
#include "tests/optimizers/checkpoint_support.h"
#include "tests/support/processes.h"

namespace bitrail {
namespace {

using namespace checkpoint;
using test::Processes;
using test::TemporaryDirectory;

const std::string kMetadata =
    R"("__metadata__":{"begin a":"0","begin b":"4","generation":"7","rank":"1","world_size":"3",)"
    R"("xxh3 a":"0123456789abcdef","xxh3 b":"fedcba9876543210"})";
const std::string kHeader = "{" + kMetadata +
                            R"(,"a":{"data_offsets":[12,15],"dtype":"U8","shape":[3]})" +
                            R"(,"b":{"data_offsets":[0,12],"dtype":"F32","shape":[3]}})";

ShardHeader Small() {
  ShardHeader header;
  header.rank = 1, header.world_size = 3, header.generation = 7;
  header.tensors = {{.name = "a", .type = Element::uint8, .shape = {3}},
                    {.name = "b", .type = Element::float32, .shape = {3}, .begin = 4}};
  LayOut(&header);
  header.tensors[0].checks = {0xfedcba9876543210};  // b: the larger elements come first
  header.tensors[1].checks = {0x0123456789abcdef};
  return header;
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  std::string text;
  ASSERT_TRUE(BuildHeader(Small(), &text).ok());
  EXPECT_EQ(text.size(), 4096u);
  EXPECT_EQ(text.substr(0, 8), std::string("\xf8\x0f\0\0\0\0\0\0", 8));
  EXPECT_EQ(text.substr(8, kHeader.size()), kHeader);
  EXPECT_EQ(text.find_first_not_of(' ', 8 + kHeader.size()), std::string::npos);
}

TEST(Safetensors, ReadsTheBytesOfTheFormat) {
  ShardHeader header;
  const Status status = ParseHeader(kHeader, &header);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(header.rank, 1);
  EXPECT_EQ(header.world_size, 3);
  EXPECT_EQ(header.generation, 7u);
  EXPECT_EQ(header.data_bytes, 15u);
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[0].begin, 4u);
  EXPECT_EQ(header.tensors[1].at, 12u);
  EXPECT_EQ(header.tensors[1].checks, std::vector<uint64_t>{0x0123456789abcdef});
}

TEST(Safetensors, RefusesWhatDoesNotFitTogether) {
  const struct {
    const char* from;
    const char* to;
    const char* words;
  } wrongs[] = {{"[12,15]", "[13,16]", "hole"},
                {"[12,15]", "[11,14]", "hole"},
                {"[12,15]", "[12,16]", "do not fit"},
                {"[12,15]", "[15,12]", "do not fit"},
                {"[12,15]", "[-12,15]", "do not fit"},
                {"[12,15]", "[12.0,15]", "do not fit"},
                {"[12,15]", "[12]", "do not fit"},
                {"\"shape\":[3]", "\"shape\":[4294967296,4294967296,4294967296]", "do not fit"},
                {"\"U8\"", "\"F8\"", "unknown dtype 'F8'"},
                {"\"rank\":\"1\"", "\"rank\":\"3\"", "rank"},
                {"\"rank\":\"1\"", "\"rank\":1", "rank"},
                {"\"begin b\":\"4\"", "\"begin b\":\"4x\"", "begin"},
                {"0123456789abcdef", "0123456789abcde", "checksums"},
                {"0123456789abcdef", "0123456789ABCDEF", "checksums"},
                {"\"a\":{", "\"a\":7,\"c\":{", "unknown dtype"},
                {"__metadata__", "__metadatb__", "missing"},
                {"{\"__meta", "[[[[[[[[[[[[", "JSON"}};
  for (const auto& wrong : wrongs) {
    std::string text = kHeader;
    text.replace(text.find(wrong.from), std::string(wrong.from).size(), wrong.to);
    ShardHeader header;
    const Status status = ParseHeader(text, &header);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT) << wrong.to;
    EXPECT_NE(status.text().find(wrong.words), std::string::npos) << wrong.to << status.text();
  }
  ShardHeader header;
  EXPECT_FALSE(ParseHeader("7", &header).ok());
  EXPECT_FALSE(ParseHeader("", &header).ok());
  EXPECT_FALSE(ParseHeader(std::string(kMaxJsonBytes + 1, ' '), &header).ok());
  EXPECT_NE(ParseHeader(std::string(1 << 20, '['), &header).text().find("deep"), std::string::npos);
}

TEST(Safetensors, OthersReadOurShards) {
  const TemporaryDirectory place;
  const test::SmallState state(7, 0);
  ASSERT_TRUE(Save(nullptr, place / "c", state.content).ok());
  Processes reader;
  reader.start(
      {"python3", BITRAIL_READ_SAFETENSORS, place / "c/rank-00000-of-00001.1.safetensors"});
  const test::Finished finished = reader.wait(0, Deadline::in_ms(30000));
  ASSERT_EQ(finished.code, 0) << finished.output;
  std::string values;
  for (size_t i = 0; i < 37; i++) values += fmt::format(" {}.0", 7000 + i);
  EXPECT_NE(finished.output.find("exp_avg F32 37 :" + values + "\n"), std::string::npos)
      << finished.output;
  EXPECT_NE(finished.output.find("params F16 2 3 :"), std::string::npos) << finished.output;
  EXPECT_NE(finished.output.find("empty F32 0 :\n"), std::string::npos) << finished.output;
}

}  // namespace
}  // namespace bitrail
