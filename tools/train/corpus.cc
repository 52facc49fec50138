#include "tools/train/corpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace bitrail::train {
namespace {

// Larger files would be read into memory for nothing: a run looks at a few MiB.
constexpr size_t kMaxCorpusBytes = size_t{1} << 30;

Status ReadFile(const std::string& path, std::string* text) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "corpus {}: {}", path, std::strerror(errno));
  if (S_ISDIR(info.st_mode))
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "corpus {}: is a folder, not a text file", path);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return failure(BITRAIL_ERR_SYSTEM, "corpus {}: {}", path, std::strerror(errno));
  text->clear();
  std::string block(size_t{1} << 20, '\0');
  while (size_t got = std::fread(block.data(), 1, block.size(), file.get())) {
    text->append(block, 0, got);
    if (text->size() > kMaxCorpusBytes)
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "corpus {}: larger than {} bytes", path,
                     kMaxCorpusBytes);
  }
  if (std::ferror(file.get()) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "corpus {}: {}", path, std::strerror(errno));
  return {};
}

bool IsControl(unsigned char byte) {
  return byte < 32 && byte != '\n' && byte != '\t' && byte != '\r' && byte != '\f';
}

Status CheckText(const std::string& path, const std::string& text) {
  if (text.empty()) return failure(BITRAIL_ERR_INVALID_ARGUMENT, "corpus {}: is empty", path);
  size_t control = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0)
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "corpus {}: holds NUL bytes, it is not text",
                     path);
    if (IsControl(byte)) control++;
  }
  if (control * 100 > text.size())
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "corpus {}: {} of {} bytes are control characters, it is not text", path,
                   control, text.size());
  if (text.size() < kMinCorpusBytes)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "corpus {}: too small, {} bytes where at least {} are needed", path, text.size(),
                   kMinCorpusBytes);
  return {};
}

void AppendGlosses(std::string_view data, std::string* text) {
  while (!data.empty()) {
    const size_t end = std::min(data.find('\n'), data.size());
    std::string_view line = data.substr(0, end);
    data.remove_prefix(std::min(end + 1, data.size()));
    if (line.empty() || line.front() == ' ') continue;
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos) continue;
    line.remove_prefix(bar + 1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    text->append(line).push_back('\n');
  }
}

}  // namespace

Status ReadGlosses(const std::string& folder, std::string* text) {
  text->clear();
  // Interleaving the parts of speech is not needed: batches are drawn from everywhere.
  for (const char* part : {"data.adj", "data.adv", "data.noun", "data.verb"}) {
    std::string data;
    if (Status status = ReadFile(folder + "/" + part, &data); !status.ok())
      return failure(status.code(),
                     "{}; the default corpus is the Debian package wordnet-base (apt-get install "
                     "wordnet-base), or give a text file with --corpus",
                     status.text());
    AppendGlosses(data, text);
  }
  return CheckText(folder, *text);
}

Status ReadCorpus(const std::string& path, std::string* text) {
  if (path.empty()) return ReadGlosses(kWordNetFolder, text);
  BITRAIL_TRY(ReadFile(path, text));
  return CheckText(path, *text);
}

}  // namespace bitrail::train
