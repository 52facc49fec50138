#include "runtime/topology/description.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "runtime/config/nearest.h"
#include "runtime/config/parse.h"
#include "runtime/topology/check.h"
#include "runtime/topology/synthesize.h"

namespace bitrail::topology {
namespace {

constexpr std::string_view kBlank = " \t\r";

struct Key {
  std::string_view name;
  double Shape::*member;
  double low, high;
  bool whole;
};

constexpr std::array kKeys = {
    Key{"nodes", &Shape::nodes, 1, kMaxNodes, true},
    Key{"gpus", &Shape::gpus, 0, 64, true},
    Key{"gpu", &Shape::gpu, 0, 999, true},
    Key{"nvlink", &Shape::nvlink, 0, 1024, true},
    Key{"nvlink_gbs", &Shape::nvlink_gbs, 0, 10'000, false},
    Key{"c2c_gbs", &Shape::c2c_gbs, 0, 10'000, false},
    Key{"nics", &Shape::nics, 0, 64, true},
    Key{"nic", &Shape::nic_mbps, 0, 1e8, false},
    Key{"sockets", &Shape::sockets, 1, 64, true},
    Key{"numa", &Shape::numa, 1, 16, true},
    Key{"pcie", &Shape::pcie, 1, 6, true},
    Key{"lanes", &Shape::lanes, 1, 32, true},
    Key{"switches", &Shape::switches, 0, 64, true},
    Key{"mnnvl", &Shape::mnnvl, 0, 1, true},
};

struct Model {
  std::string_view name;
  int sm;
};
constexpr std::array kModels = {Model{"p100", 60}, Model{"v100", 70}, Model{"a100", 80},
                                Model{"h100", 90}, Model{"h200", 90}, Model{"b200", 100},
                                Model{"b300", 103}};

// A decimal number; for `gpu` also a model's name, for `nic` a number with G or M behind it.
bool parse_value(std::string_view key, std::string_view text, double* value) {
  if (key == "gpu")
    for (const Model& model : kModels)
      if (text == model.name) {
        *value = model.sm;
        return true;
      }
  double unit = 1;
  if (key == "nic") {
    if (text.empty() || (text.back() != 'G' && text.back() != 'M')) return false;
    unit = text.back() == 'G' ? 1000 : 1;
    text.remove_suffix(1);
  }
  if (!config::parse_real(text, value)) return false;
  *value *= unit;
  return true;
}

Status unknown(const std::string& where, std::string_view key) {
  std::vector<std::string_view> names;
  names.reserve(std::size(kKeys));
  for (const Key& known : kKeys) names.push_back(known.name);
  return failure(BITRAIL_ERR_CONFIG, "{}: '{}' is not known; did you mean {}?", where,
                 key.substr(0, 64), config::nearest(key, names));
}

Status assign(const std::string& where, std::string_view word, Shape* shape) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos)
    return failure(BITRAIL_ERR_CONFIG, "{}: '{}' is not KEY=VALUE", where, word.substr(0, 64));
  const std::string_view key = word.substr(0, equals), text = word.substr(equals + 1);
  const auto* known = std::ranges::find(kKeys, key, &Key::name);
  if (known == kKeys.end()) return unknown(where, key);
  double value = 0;
  const bool good = parse_value(key, text, &value) && value >= known->low && value <= known->high &&
                    (!known->whole || value == static_cast<double>(static_cast<int64_t>(value)));
  if (!good)
    return failure(BITRAIL_ERR_CONFIG, "{}: {}={}: has to be {} from {} to {}{}", where, key,
                   text.substr(0, 64), known->whole ? "a whole number" : "a number", known->low,
                   known->high, key == "nic" ? " Mbit/s, written 400G or 100M" : "");
  shape->*(known->member) = value;
  return {};
}

Status read_line(const std::string& where, std::string_view line, Shape* shape) {
  while (true) {
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    line.remove_prefix(begin);
    const std::string_view word = line.substr(0, line.find_first_of(kBlank));
    BITRAIL_TRY(assign(where, word, shape));
    line.remove_prefix(word.size());
  }
}

}  // namespace

Status read_description(std::string_view text, const std::string& name, Cluster* cluster) {
  for (int number = 1; !text.empty(); number++) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(kBlank) == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    Shape shape;
    BITRAIL_TRY(read_line(where, line, &shape));
    const auto nodes = static_cast<size_t>(shape.nodes);
    if (cluster->nodes.size() + nodes > kMaxNodes || cluster->kinds.size() >= kMaxGroups)
      return failure(BITRAIL_ERR_CONFIG, "{}: more than {} nodes or {} groups", where, kMaxNodes,
                     kMaxGroups);
    cluster->nodes.insert(cluster->nodes.end(), nodes, static_cast<int>(cluster->kinds.size()));
    cluster->kinds.push_back(synthesize(shape));
    cluster->one_nvlink_domain = cluster->one_nvlink_domain || shape.mnnvl != 0;
  }
  return check(*cluster, name);
}

}  // namespace bitrail::topology
