// The known name that a mistyped one most likely meant.
#pragma once

#include <span>
#include <string_view>

namespace bitrail::config {

// Levenshtein distance: insertions, deletions and replacements that turn a into b.
int edit_distance(std::string_view a, std::string_view b);
// The name in `known` with the smallest distance to `name`; the first of equals, empty if there is
// none. `name` may have any length (what is past 64 characters does not count).
std::string_view nearest(std::string_view name, std::span<const std::string_view> known);
// Of the variables' names.
std::string_view nearest(std::string_view name);

}  // namespace bitrail::config
