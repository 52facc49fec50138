// Symbolic values for the verifier: what one element holds, as a number for a set of contributions.
//
// A contribution is element `index` of rank `rank`'s input; a value is how often each is inside.
// Equal sets have equal numbers, so copying and comparing are cheap, and sums are remembered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace bitrail::schedule {

using Value = uint32_t;
constexpr Value kUnwritten = 0;
constexpr Value kNeutral = 1;  // written, but no contribution: errors, scales, flags
constexpr Value kOpaque = 2;   // came through a module's own operation: anything

class ValueTable {
 public:
  ValueTable();
  Value contribution(int rank, uint64_t index);
  // Unwritten if any is, else opaque if any is.
  Value sum(Value a, Value b);
  // One contribution of element `index` from every rank.
  Value everyone(int world_size, uint64_t index);
  // "rank 0 [5] + 2 x rank 3 [5]"
  std::string text(Value value) const;

 private:
  struct Term {
    int rank;
    uint64_t index;
    uint32_t times;
    auto operator<=>(const Term&) const = default;
  };
  using Terms = std::vector<Term>;
  struct Hash {
    size_t operator()(const Terms& terms) const;
  };
  Value intern(Terms terms);

  std::vector<Terms> terms_;  // by value
  std::unordered_map<Terms, Value, Hash> values_;
  std::unordered_map<uint64_t, Value> sums_;
};

}  // namespace bitrail::schedule
