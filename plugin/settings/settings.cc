#include "plugin/settings/settings.h"

#include <array>
#include <cstdlib>
#include <string_view>

#include "plugin/env/values.h"
#include "plugin/log/log.h"
#include "plugin/settings/interfaces.h"
#include "runtime/api/transport_options.h"

namespace bitrail::plugin {
namespace {

// How a value of NCCL's becomes one of ours. Empty: NCCL's word for "not set".
using Translate = std::string (*)(const std::string& value);

std::string same(const std::string& value) { return value; }
std::string unless_negative(const std::string& value) {
  return value.starts_with('-') ? std::string() : value;
}
std::string family(const std::string& value) {
  if (value == "AF_INET") return "ipv4";
  return value == "AF_INET6" ? "ipv6" : value;
}
std::string switched(const std::string& value) {  // -2 automatic
  if (value.starts_with('-')) return {};
  return value == "0" ? "off" : "on";
}
std::string relaxed(const std::string& value) {
  if (value == "0") return "off";
  return value == "1" ? "on" : "auto";
}

struct Knob {
  const char* theirs;
  const char* ours;
  Translate translate;
};
constexpr std::array kKnobs = {
    Knob{"NCCL_IB_HCA", "BITRAIL_IB_HCA", same},
    Knob{"NCCL_IB_GID_INDEX", "BITRAIL_IB_GID_INDEX", same},
    Knob{"NCCL_IB_ROCE_VERSION_NUM", "BITRAIL_IB_ROCE_VERSION", same},
    Knob{"NCCL_IB_ADDR_FAMILY", "BITRAIL_IB_ADDRESS_FAMILY", family},
    Knob{"NCCL_IB_ADDR_RANGE", "BITRAIL_IB_ADDRESS_RANGE", same},
    Knob{"NCCL_IB_TIMEOUT", "BITRAIL_IB_TIMEOUT", same},
    Knob{"NCCL_IB_RETRY_CNT", "BITRAIL_IB_RETRY_COUNT", same},
    Knob{"NCCL_IB_SL", "BITRAIL_IB_SERVICE_LEVEL", unless_negative},
    Knob{"NCCL_IB_TC", "BITRAIL_IB_TRAFFIC_CLASS", unless_negative},
    Knob{"NCCL_IB_PKEY", "BITRAIL_IB_PKEY", same},
    Knob{"NCCL_IB_QPS_PER_CONNECTION", "BITRAIL_IB_QPS", same},
    Knob{"NCCL_IB_SPLIT_DATA_ON_QPS", "BITRAIL_IB_SPLIT", same},
    Knob{"NCCL_IB_ADAPTIVE_ROUTING", "BITRAIL_IB_ADAPTIVE_ROUTING", switched},
    Knob{"NCCL_IB_AR_THRESHOLD", "BITRAIL_IB_ADAPTIVE_THRESHOLD", unless_negative},
    Knob{"NCCL_IB_PCI_RELAXED_ORDERING", "BITRAIL_IB_RELAXED_ORDERING", relaxed},
};

}  // namespace

std::vector<config::Assignment> nccl_defaults(const Lookup& lookup,
                                              std::vector<std::string>* ignored) {
  std::vector<config::Assignment> defaults;
  for (const Knob& knob : kKnobs) {
    const config::Variable* variable = config::find(knob.ours);
    const char* set = lookup(knob.theirs);
    if (variable == nullptr || set == nullptr || *set == 0) continue;
    const std::string value = knob.translate(set);
    if (value.empty()) continue;
    config::Settings scratch;
    const Status status = config::assign(*variable, value, knob.theirs, &scratch);
    if (status.ok()) {
      defaults.push_back({knob.ours, value, knob.theirs, config::Origin::environment});
    } else {
      ignored->push_back(status.text());
    }
  }
  return defaults;
}

Status load_settings(config::Settings* settings) {
  Values file;
  BITRAIL_TRY(nccl_values(&file));
  const Lookup environment = [&file](const char* name) -> const char* {
    if (const char* set = std::getenv(name)) return set;
    const auto found = file.find(std::string_view(name));
    return found == file.end() ? nullptr : found->second.c_str();
  };
  std::vector<std::string> ignored;
  const std::vector<config::Assignment> defaults = nccl_defaults(environment, &ignored);
  for (const std::string& text : ignored) warn("init", "{}; the default is used", text);
  BITRAIL_TRY(config::load(defaults, settings));
  if (settings->link_mbps > 0 || settings->link_us > 0) {
    warn("init", "BITRAIL_LINK_MBPS and BITRAIL_LINK_US have no effect under NCCL");
  }
  if (!settings->interface.empty()) return {};
  const char* list = environment("NCCL_SOCKET_IFNAME");
  const char* wanted = environment("NCCL_SOCKET_FAMILY");
  const bool chosen = (list != nullptr && *list != 0) || (wanted != nullptr && *wanted != 0);
  if (!chosen) return {};
  return choose_address(list == nullptr ? "" : list, wanted == nullptr ? "" : wanted,
                        &settings->interface);
}

void transport_options(const config::Settings& settings, uint64_t comm_id, int traffic_class,
                       transport::Options* options) {
  *options = {};
  // NCCL's ranks have no secret in common unless the user gives one; what keeps strangers out then
  // is the listener's 64-bit nonce, which travels in the handle only.
  options->identity.secret = settings.secret.empty() ? "no secret under NCCL" : settings.secret;
  options->identity.job_id = fmt::format("{}/nccl/{:016x}", settings.job_id, comm_id);
  options->bind_address = settings.interface;
  options->ib = api::ib_options(settings);
  // NCCL's communicator may ask for one; the user's variables win.
  if (options->ib.traffic_class == 0 && traffic_class > 0) {
    options->ib.traffic_class = traffic_class;
  }
}

}  // namespace bitrail::plugin
