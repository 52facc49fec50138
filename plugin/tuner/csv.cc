#include "plugin/tuner/csv.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>

#include "plugin/abi/tuner_types.h"
#include "runtime/config/parse.h"

namespace bitrail::plugin::tuner {
namespace {

using Fields = std::vector<std::string_view>;

constexpr size_t kMinFields = 6, kMaxFields = 10;
constexpr std::string_view kBlanks = " \t\r";

// In the order of NCCL's numbers.
constexpr std::array<std::string_view, nccl::kFunctions> kFunctionNames = {
    "broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
constexpr std::array<std::string_view, nccl::kAlgorithms> kAlgorithmNames = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, nccl::kProtocols> kProtocolNames = {"ll", "ll128", "simple"};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// What may be shown of a field.
std::string shown(std::string_view field) {
  std::string text(field.substr(0, 32));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

bool is_any(std::string_view field) { return field.empty() || field == "-1" || field == "*"; }

Fields split(std::string_view line) {
  Fields fields;
  for (size_t begin = 0; begin <= line.size() && fields.size() <= kMaxFields;) {
    const size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

Status word(const char* column, std::string_view field, std::span<const std::string_view> names,
            int* value) {
  if (is_any(field)) return {};
  std::string known;
  for (size_t i = 0; i < names.size(); i++) {
    std::string same;
    if (config::parse_choice(field, names[i], &same)) {
      *value = static_cast<int>(i);
      return {};
    }
    known += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  }
  return failure(BITRAIL_ERR_CONFIG, "{} '{}' is none of {}", column, shown(field), known);
}

template <typename Integer>
Status number(const char* column, std::string_view field, int64_t low, int64_t high,
              Integer* value) {
  if (is_any(field)) return {};
  int64_t read = 0;
  if (!config::parse_integer(field, &read) || read < low || read > high) {
    return failure(BITRAIL_ERR_CONFIG, "{} '{}' is not a number from {} to {}", column,
                   shown(field), low, high);
  }
  *value = static_cast<Integer>(read);
  return {};
}

Status read_row(const Fields& fields, Row* row) {
  if (fields.size() < kMinFields || fields.size() > kMaxFields) {
    return failure(BITRAIL_ERR_CONFIG, "{} fields instead of {} to {}",
                   fields.size() > kMaxFields ? "too many" : fmt::format("{}", fields.size()),
                   kMinFields, kMaxFields);
  }
  const auto field = [&](size_t i) { return i < fields.size() ? fields[i] : std::string_view(); };
  BITRAIL_TRY(word("collective", field(0), kFunctionNames, &row->function));
  BITRAIL_TRY(number("min_bytes", field(1), 0, INT64_MAX, &row->min_bytes));
  BITRAIL_TRY(number("max_bytes", field(2), 0, INT64_MAX, &row->max_bytes));
  BITRAIL_TRY(word("algorithm", field(3), kAlgorithmNames, &row->algorithm));
  BITRAIL_TRY(word("protocol", field(4), kProtocolNames, &row->protocol));
  BITRAIL_TRY(number("channels", field(5), 1, nccl::kMaxChannels, &row->channels));
  BITRAIL_TRY(number("nNodes", field(6), 1, INT32_MAX, &row->nodes));
  BITRAIL_TRY(number("nRanks", field(7), 1, INT32_MAX, &row->ranks));
  BITRAIL_TRY(number("numPipeOps", field(8), 1, INT32_MAX, &row->pipe_ops));
  BITRAIL_TRY(number("regBuff", field(9), 0, 1, &row->registered));
  if (row->min_bytes > row->max_bytes) {
    return failure(BITRAIL_ERR_CONFIG, "min_bytes {} is above max_bytes {}", row->min_bytes,
                   row->max_bytes);
  }
  if (row->algorithm == kAny && row->protocol == kAny && row->channels == 0) {
    return failure(BITRAIL_ERR_CONFIG, "asks for nothing: no algorithm, protocol or channels");
  }
  return {};
}

// Before the first row, and names no collective.
bool is_heading(const Fields& fields, const std::vector<Row>& rows) {
  std::string same;
  return rows.empty() && !fields.empty() &&
         config::parse_choice(fields[0], "collective|colltype|coll_type|collective_type", &same);
}

}  // namespace

void read_csv(std::string_view text, const std::string& name, std::vector<Row>* rows,
              std::vector<std::string>* problems) {
  size_t refused = 0;
  const auto refuse_row = [&](int line, const std::string& reason) {
    if (++refused <= kMaxProblems)
      problems->push_back(fmt::format("{}:{}: {}", name, line, reason));
  };
  int line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    line++;
    if (content.empty() || content[0] == '#') continue;
    const Fields fields = split(content);
    if (is_heading(fields, *rows)) continue;
    if (rows->size() == kMaxRows) {
      refuse_row(line, fmt::format("more than {} rows; what follows is left out", kMaxRows));
      break;
    }
    Row row;
    row.line = line;
    const Status status = read_row(fields, &row);
    if (status.ok()) {
      rows->push_back(row);
    } else {
      refuse_row(line, status.text());
    }
  }
  if (refused > kMaxProblems) {
    problems->push_back(
        fmt::format("{}: {} more rows cannot be used", name, refused - kMaxProblems));
  }
}

Status read_csv_file(const std::string& path, std::vector<Row>* rows,
                     std::vector<std::string>* problems) {
  struct stat about = {};
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file || fstat(fileno(file.get()), &about) != 0) {
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_TUNER_CSV: cannot open '{}': {}", path,
                   std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) {
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_TUNER_CSV: '{}' is not a file", path);
  }
  std::string text(kMaxCsvBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_TUNER_CSV: cannot read '{}': {}", path,
                   std::strerror(errno));
  }
  if (text.size() > kMaxCsvBytes) {
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_TUNER_CSV: '{}' is larger than {} MiB", path,
                   kMaxCsvBytes >> 20);
  }
  read_csv(text, path, rows, problems);
  return {};
}

}  // namespace bitrail::plugin::tuner
