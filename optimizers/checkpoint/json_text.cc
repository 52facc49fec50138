#include "optimizers/checkpoint/json_text.h"

namespace bitrail::checkpoint {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;

const json* Member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

Status ParseJson(std::string_view text, json* value) {
  if (text.size() > kMaxJsonBytes) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} bytes of JSON, at most {} are read",
                   text.size(), kMaxJsonBytes);
  }
  bool deep = false;
  const auto shallow = [&deep](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) deep = true;
    return depth <= kMaxDepth;  // false: dropped
  };
  *value = json::parse(text, shallow, false);
  if (deep || value->is_discarded()) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, deep ? "JSON nested too deeply" : "not JSON");
  }
  return {};
}

Status DumpJson(const json& value, int indent, std::string* text) {
  try {
    *text = value.dump(indent);
  } catch (const json::exception& error) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: a name or string is not UTF-8 ({})",
                   error.what());
  }
  return {};
}

bool GetUnsigned(const json& object, const char* key, uint64_t* value) {
  const json* member = Member(object, key);
  if (member == nullptr || !member->is_number_unsigned()) return false;
  *value = member->get<uint64_t>();
  return true;
}

bool GetString(const json& object, const char* key, std::string* value) {
  const json* member = Member(object, key);
  if (member == nullptr || !member->is_string()) return false;
  *value = member->get<std::string>();
  return true;
}

bool GetUnsignedList(const json& object, const char* key, std::vector<uint64_t>* values) {
  const json* member = GetList(object, key);
  if (member == nullptr) return false;
  values->clear();
  for (const json& item : *member) {
    if (!item.is_number_unsigned()) return false;
    values->push_back(item.get<uint64_t>());
  }
  return true;
}

const json* GetList(const json& object, const char* key) {
  const json* member = Member(object, key);
  return member != nullptr && member->is_array() ? member : nullptr;
}

}  // namespace bitrail::checkpoint
