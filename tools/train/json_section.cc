#include "tools/train/json_section.h"

#include <strings.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "runtime/config/nearest.h"

namespace bitrail::train {
namespace {

using nlohmann::json;

// What stands there, short enough for a line.
std::string Shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

bool SameWord(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

JsonSection::JsonSection(const json& object, std::string file, std::string path,
                         std::vector<std::string>* notes)
    : object_(object), file_(std::move(file)), path_(std::move(path)), notes_(notes) {}

std::string JsonSection::Path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const json* JsonSection::Find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = object_.find(known_.back());
  return found == object_.end() ? nullptr : &*found;
}

void JsonSection::Fail(std::string_view key, std::string_view problem) {
  if (first_.ok()) first_ = failure(BITRAIL_ERR_CONFIG, "{}: {}: {}", file_, Path(key), problem);
}

void JsonSection::Take(Status status) {
  if (first_.ok()) first_ = std::move(status);
}

void JsonSection::Note(std::string text) {
  if (std::find(notes_->begin(), notes_->end(), text) == notes_->end())
    notes_->push_back(std::move(text));
}

void JsonSection::Ignore(std::string_view key, std::string_view reason) {
  if (Find(key) != nullptr) Note(fmt::format("{} is read and not followed: {}", Path(key), reason));
}

void JsonSection::Refuse(std::string_view key, std::string_view reason) {
  if (Find(key) != nullptr) Fail(key, reason);
}

bool JsonSection::Real(std::string_view key, double* value, double low, double high) {
  const json* found = Find(key);
  if (found == nullptr) return false;
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (number >= low && number <= high) {
    *value = number;
    return true;
  }
  Fail(key, fmt::format("is {}, must be a number from {} to {}", Shown(*found), low, high));
  return false;
}

bool JsonSection::Integer(std::string_view key, int64_t* value, int64_t low, int64_t high) {
  const json* found = Find(key);
  if (found == nullptr) return false;
  // Every integer of a range that matters is a double exactly.
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (number >= static_cast<double>(low) && number <= static_cast<double>(high) &&
      number == std::floor(number)) {
    *value = static_cast<int64_t>(number);
    return true;
  }
  Fail(key, fmt::format("is {}, must be an integer from {} to {}", Shown(*found), low, high));
  return false;
}

bool JsonSection::Boolean(std::string_view key, bool* value) {
  const json* found = Find(key);
  if (found == nullptr) return false;
  if (found->is_boolean()) {
    *value = found->get<bool>();
    return true;
  }
  Fail(key, fmt::format("is {}, must be true or false", Shown(*found)));
  return false;
}

bool JsonSection::Word(std::string_view key, std::initializer_list<std::string_view> words,
                       size_t* value) {
  const json* found = Find(key);
  if (found == nullptr) return false;
  const std::string text = found->is_string() ? found->get<std::string>() : std::string();
  std::string all;
  for (const std::string_view& word : words) {
    if (SameWord(text, word)) {
      *value = static_cast<size_t>(&word - words.begin());
      return true;
    }
    all += fmt::format("{}{}", all.empty() ? "" : ", ", word);
  }
  Fail(key, fmt::format("is {}, must be one of {}", Shown(*found), all));
  return false;
}

const json* JsonSection::Object(std::string_view key) {
  const json* found = Find(key);
  if (found == nullptr || found->is_object()) return found;
  Fail(key, fmt::format("is {}, must be an object {{...}}", Shown(*found)));
  return nullptr;
}

Status JsonSection::Finish() {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return failure(BITRAIL_ERR_CONFIG, "{}: {}: there is no such key here; did you mean {}?", file_,
                   Path(key.substr(0, 64)), config::nearest(key, known));
  }
  return first_;
}

Status ParseJsonObject(std::string_view text, const std::string& file, json* object) {
  std::vector<std::set<std::string>> keys;  // of the objects around the parser's position
  std::string twice;
  const auto watch = [&](int /*depth*/, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second &&
        twice.empty())
      twice = value.get<std::string>();
    return true;
  };
  try {
    *object = json::parse(text, watch);
  } catch (const json::exception& error) {
    return failure(BITRAIL_ERR_CONFIG, "{}: is not JSON: {}", file, error.what());
  }
  if (!twice.empty())
    return failure(BITRAIL_ERR_CONFIG, "{}: the key {} stands twice in one object", file,
                   twice.substr(0, 64));
  if (!object->is_object())
    return failure(BITRAIL_ERR_CONFIG, "{}: must hold one object {{...}}", file);
  return {};
}

}  // namespace bitrail::train
