#include "runtime/config/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace bitrail::config {
namespace {

constexpr size_t kMaxFile = 1 << 20;
constexpr std::string_view kBlank = " \t\r\v\f";

std::string_view cut(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

Status parse_file(std::string_view text, const std::string& name,
                  std::vector<Assignment>* assignments) {
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = cut(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    number++;
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", name, number);
    const size_t equals = line.find('=');
    if (line.find('\0') != std::string_view::npos || equals == std::string_view::npos) {
      return failure(BITRAIL_ERR_CONFIG,
                     "{}: not a NAME=VALUE line (BITRAIL_CONFIG names this file)", where);
    }
    const std::string key(cut(line.substr(0, equals)));
    if (!key.starts_with("BITRAIL_") && !is_other(key)) {
      return failure(BITRAIL_ERR_CONFIG,
                     "{}: only BITRAIL_* and NCCL_* names belong here, not '{}'", where,
                     key.substr(0, 64));
    }
    if (key == "BITRAIL_CONFIG") {
      return failure(BITRAIL_ERR_CONFIG, "{}: a file cannot name another one by BITRAIL_CONFIG",
                     where);
    }
    assignments->push_back({key, std::string(cut(line.substr(equals + 1))), where, Origin::file});
  }
  return {};
}

Status read_file(const std::string& path, std::vector<Assignment>* assignments) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file) {
    return failure(BITRAIL_ERR_CONFIG, "cannot open '{}' (BITRAIL_CONFIG): {}", path,
                   std::strerror(errno));
  }
  std::string text(kMaxFile + 1, '\0');
  const size_t bytes = std::fread(text.data(), 1, text.size(), file.get());
  if (std::ferror(file.get()) != 0) {
    return failure(BITRAIL_ERR_CONFIG, "cannot read '{}' (BITRAIL_CONFIG): {}", path,
                   std::strerror(errno));
  }
  if (bytes > kMaxFile) {
    return failure(BITRAIL_ERR_CONFIG, "'{}' (BITRAIL_CONFIG) is larger than {} bytes", path,
                   kMaxFile);
  }
  text.resize(bytes);
  return parse_file(text, path, assignments);
}

}  // namespace bitrail::config
