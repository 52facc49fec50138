#include "tools/train/corpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace bitrail::train {
namespace {

// A folder of its own, removed with everything in it.
class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "bitrail-corpus-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  // Expects that reading `path` fails with a text that holds the path and `reason`.
  void ExpectRefused(const std::string& path, const std::string& reason) {
    std::string text;
    const Status status = ReadCorpus(path, &text);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
    EXPECT_NE(status.text().find(reason), std::string::npos) << status.text();
  }

  std::string folder_;
};

std::string Words(size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "a line of plain words\n";
  return text;
}

TEST_F(Corpus, ReadsAnyTextFile) {
  const std::string words = Words(kMinCorpusBytes);
  std::string text;
  const Status status = ReadCorpus(Write("words", words), &text);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(text, words);
}

TEST_F(Corpus, RefusesMissing) { ExpectRefused(folder_ + "/none", "No such file"); }
TEST_F(Corpus, RefusesEmpty) { ExpectRefused(Write("empty", ""), "is empty"); }
TEST_F(Corpus, RefusesFolder) { ExpectRefused(folder_, "is a folder"); }
TEST_F(Corpus, RefusesSmall) { ExpectRefused(Write("small", Words(1000)), "too small"); }
TEST_F(Corpus, RefusesNul) {
  ExpectRefused(Write("nul", Words(kMinCorpusBytes) + std::string(1, '\0')), "NUL");
}
TEST_F(Corpus, RefusesControlBytes) {
  ExpectRefused(Write("control", Words(kMinCorpusBytes) + std::string(1000, '\x01')),
                "control characters");
}
TEST_F(Corpus, RefusesUnreadable) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const std::string path = Write("locked", Words(kMinCorpusBytes));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ExpectRefused(path, "Permission denied");
}

TEST_F(Corpus, TakesGlossesOfAllParts) {
  const std::string line = "00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 | that which is  \n";
  std::string many;
  for (int i = 0; i < 400; i++) many += line;
  for (const char* part : {"data.adj", "data.adv", "data.noun", "data.verb"})
    Write(part, "  1 a licence line | not a gloss\n" + many);
  std::string text;
  const Status status = ReadGlosses(folder_, &text);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(text.substr(0, 30), "that which is\nthat which is\nth");
  EXPECT_EQ(text.size(), 4U * 400 * 14);
  EXPECT_EQ(text.find("licence"), std::string::npos);
}

TEST_F(Corpus, NamesThePackageWhenGlossesAreMissing) {
  std::string text;
  const Status status = ReadGlosses(folder_, &text);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.text().find("wordnet-base"), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("--corpus"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace bitrail::train
