// JSON with bounds, for bytes that may be hostile, and strict access to its values.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/common/status.h"

namespace bitrail::checkpoint {

// Of checkpoint.json and of a shard's header: enough for the checksums of a terabyte. Parsed,
// hostile ones take up to 20 times as much memory.
constexpr size_t kMaxJsonBytes = size_t{16} << 20;

// Fails on what is too large, nested more than 8 deep, or no JSON.
Status ParseJson(std::string_view text, nlohmann::json* value);

// Fails on strings that are not UTF-8. `indent` as nlohmann's dump; -1: one line.
Status DumpJson(const nlohmann::json& value, int indent, std::string* text);

// Member `key` of an object, when there is one of exactly this type. No conversions.
bool GetUnsigned(const nlohmann::json& object, const char* key, uint64_t* value);
bool GetString(const nlohmann::json& object, const char* key, std::string* value);
bool GetUnsignedList(const nlohmann::json& object, const char* key, std::vector<uint64_t>* values);
// NULL: no object, or no list of this name in it.
const nlohmann::json* GetList(const nlohmann::json& object, const char* key);

}  // namespace bitrail::checkpoint
