#include "runtime/schedule/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace bitrail::schedule {

ValueTable::ValueTable() : terms_(3) {}

size_t ValueTable::Hash::operator()(const Terms& terms) const {
  uint64_t h = 0xcbf29ce484222325u;
  for (const Term& term : terms) {
    h = (h ^ static_cast<uint64_t>(term.rank)) * 0x100000001b3u;
    h = (h ^ term.index) * 0x100000001b3u;
    h = (h ^ term.times) * 0x100000001b3u;
  }
  return h ^ (h >> 29);
}

Value ValueTable::intern(Terms terms) {
  const auto next = static_cast<Value>(terms_.size());
  const auto [place, fresh] = values_.try_emplace(terms, next);
  if (fresh) terms_.push_back(std::move(terms));
  return place->second;
}

Value ValueTable::contribution(int rank, uint64_t index) { return intern({{rank, index, 1}}); }

Value ValueTable::everyone(int world_size, uint64_t index) {
  Terms terms;
  for (int rank = 0; rank < world_size; rank++) terms.push_back({rank, index, 1});
  return intern(std::move(terms));
}

Value ValueTable::sum(Value a, Value b) {
  if (a == kUnwritten || b == kUnwritten) return kUnwritten;
  if (a == kOpaque || b == kOpaque) return kOpaque;
  if (a == kNeutral) return b;
  if (b == kNeutral) return a;
  const uint64_t key = (static_cast<uint64_t>(std::min(a, b)) << 32) | std::max(a, b);
  if (const auto known = sums_.find(key); known != sums_.end()) return known->second;
  Terms terms;
  const Terms& x = terms_[a];
  const Terms& y = terms_[b];
  size_t i = 0;
  size_t j = 0;
  while (i < x.size() || j < y.size()) {
    const auto before = [](const Term& s, const Term& t) {
      return std::pair(s.rank, s.index) < std::pair(t.rank, t.index);
    };
    if (j == y.size() || (i < x.size() && before(x[i], y[j]))) {
      terms.push_back(x[i++]);
    } else if (i == x.size() || before(y[j], x[i])) {
      terms.push_back(y[j++]);
    } else {
      terms.push_back({x[i].rank, x[i].index, x[i].times + y[j].times});
      i++;
      j++;
    }
  }
  const Value result = intern(std::move(terms));
  sums_[key] = result;
  return result;
}

std::string ValueTable::text(Value value) const {
  if (value == kUnwritten) return "nothing";
  if (value == kNeutral) return "no contribution";
  if (value == kOpaque) return "opaque";
  constexpr size_t kShown = 4;
  const Terms& terms = terms_[value];
  std::string text;
  for (size_t i = 0; i < std::min(terms.size(), kShown); i++) {
    if (i) text += " + ";
    if (terms[i].times != 1) text += fmt::format("{} x ", terms[i].times);
    text += fmt::format("rank {} [{}]", terms[i].rank, terms[i].index);
  }
  if (terms.size() > kShown) text += fmt::format(" + {} more", terms.size() - kShown);
  return text;
}

}  // namespace bitrail::schedule
