#include "runtime/config/nearest.h"

#include <algorithm>
#include <array>
#include <climits>
#include <numeric>
#include <vector>

#include "runtime/config/variables.h"

namespace bitrail::config {

// row[j] = distance(a[0..i), b[0..j)), one row at a time.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); i++) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); j++) {
      const int replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> known) {
  name = name.substr(0, 64);
  std::string_view best;
  int best_distance = INT_MAX;
  for (const std::string_view candidate : known) {
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string_view nearest(std::string_view name) {
  std::array<std::string_view, kVariables.size()> names;
  std::transform(kVariables.begin(), kVariables.end(), names.begin(),
                 [](const Variable& variable) { return variable.name; });
  return nearest(name, names);
}

}  // namespace bitrail::config
