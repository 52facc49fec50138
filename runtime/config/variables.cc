#include "runtime/config/variables.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

#include "runtime/config/file.h"
#include "runtime/config/nearest.h"
#include "runtime/config/parse.h"
#include "runtime/trace/log.h"

namespace bitrail::config {
namespace {

constinit std::atomic<bool> warned_unknown{false};

const char* type_name(const Variable& variable) {
  constexpr const char* kNames[] = {"text", "integer", "number"};
  return variable.choices.empty() ? kNames[variable.member.index()] : "choice";
}

// What a value may be, for messages: "an integer from 1 to 86400000".
std::string allowed(const Variable& variable) {
  if (!variable.choices.empty()) return fmt::format("one of {}", variable.choices);
  if (variable.member.index() == 1) {
    return fmt::format("an integer from {} to {}", static_cast<int64_t>(variable.low),
                       static_cast<int64_t>(variable.high));
  }
  return fmt::format("a number from {} to {}", variable.low, variable.high);
}

std::string text_of(const Variable& variable, const Settings& settings) {
  if (const auto* text = std::get_if<0>(&variable.member)) {
    const std::string& value = settings.*(*text);
    return variable.hidden && !value.empty() ? "(set, not shown)" : value;
  }
  if (const auto* integer = std::get_if<1>(&variable.member)) {
    return fmt::format("{}", settings.*(*integer));
  }
  return fmt::format("{}", settings.*std::get<2>(variable.member));
}

// File first, then the environment, so that the environment wins.
Status gather(std::vector<Assignment>* assignments) {
  std::vector<Assignment> environment;
  std::string file;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; entry++) {
    const char* equals = std::strchr(*entry, '=');
    if (std::strncmp(*entry, "BITRAIL_", 8) != 0 || equals == nullptr) continue;
    environment.push_back({std::string(*entry, static_cast<size_t>(equals - *entry)), equals + 1,
                           "the environment", Origin::environment});
    if (environment.back().name == "BITRAIL_CONFIG") file = environment.back().value;
  }
  if (!file.empty()) BITRAIL_TRY(read_file(file, assignments));
  for (Assignment& entry : environment) assignments->push_back(std::move(entry));
  return {};
}

void set_log_level(const Settings& settings) {
  using log::Level;
  const std::string& debug = settings.debug;
  log::set_level(debug == "TRACE"  ? Level::trace
                 : debug == "INFO" ? Level::info
                 : debug == "NONE" ? Level::none
                                   : Level::warn);
}

}  // namespace

const Variable* find(std::string_view name) {
  for (const Variable& variable : kVariables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

Status assign(const Variable& variable, std::string_view value, const std::string& where,
              Settings* settings) {
  bool good = true;
  if (const auto* text = std::get_if<0>(&variable.member)) {
    if (variable.choices.empty()) {
      settings->*(*text) = value;
    } else {
      good = parse_choice(value, variable.choices, &(settings->*(*text)));
    }
  } else if (const auto* integer = std::get_if<1>(&variable.member)) {
    int64_t number = 0;
    good = parse_integer(value, &number) && static_cast<double>(number) >= variable.low &&
           static_cast<double>(number) <= variable.high;
    if (good) settings->*(*integer) = number;
  } else {
    double number = 0;
    good = parse_real(value, &number) && number >= variable.low && number <= variable.high;
    if (good) settings->*std::get<2>(variable.member) = number;
  }
  if (good) return {};
  return failure(BITRAIL_ERR_CONFIG, "{}='{}' in {} is not usable: it has to be {}", variable.name,
                 value.substr(0, 64), where, allowed(variable));
}

Status apply(const std::vector<Assignment>& assignments, Settings* settings,
             std::vector<Assignment>* unknown) {
  for (const Variable& variable : kVariables) {
    BITRAIL_TRY(assign(variable, variable.standard, "the table of defaults", settings));
  }
  for (const Assignment& assignment : assignments) {
    if (is_other(assignment.name)) continue;
    const Variable* variable = find(assignment.name);
    if (variable == nullptr) {
      if (unknown != nullptr) unknown->push_back(assignment);
    } else if (!assignment.value.empty()) {
      BITRAIL_TRY(assign(*variable, assignment.value, assignment.where, settings));
    }
  }
  return {};
}

Status load(Settings* settings) { return load({}, settings); }

Status load(const std::vector<Assignment>& defaults, Settings* settings) {
  std::vector<Assignment> assignments = defaults, unknown;
  BITRAIL_TRY(gather(&assignments));
  BITRAIL_TRY(apply(assignments, settings, &unknown));
  set_log_level(*settings);
  if (!unknown.empty() && !warned_unknown.exchange(true)) {
    for (const Assignment& entry : unknown) {
      log::warn("{} in {} is not known and has no effect; did you mean {}?", entry.name,
                entry.where, nearest(entry.name));
    }
  }
  return {};
}

Status describe(std::vector<Value>* values) {
  std::vector<Assignment> assignments;
  Settings settings;
  BITRAIL_TRY(gather(&assignments));
  BITRAIL_TRY(apply(assignments, &settings, nullptr));
  for (const Variable& variable : kVariables) {
    Origin origin = Origin::standard;
    for (const Assignment& entry : assignments) {
      if (entry.name == variable.name && !entry.value.empty()) origin = entry.origin;
    }
    values->push_back({std::string(variable.name), type_name(variable), text_of(variable, settings),
                       std::string(variable.meaning), origin});
  }
  return {};
}

}  // namespace bitrail::config
