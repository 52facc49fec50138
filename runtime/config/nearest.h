// The known variable that a mistyped name most likely meant.
#pragma once

#include <string_view>

namespace bitrail::config {

// Levenshtein distance: insertions, deletions and replacements that turn a into b.
int edit_distance(std::string_view a, std::string_view b);
// The table's name with the smallest distance to `name`; the first of equals. `name` may have any
// length (what is past 64 characters does not count).
std::string_view nearest(std::string_view name);

}  // namespace bitrail::config
