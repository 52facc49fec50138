#include "runtime/api/transport_options.h"

namespace bitrail::api {

transport::verbs::IbOptions ib_options(const config::Settings& settings) {
  transport::verbs::IbOptions ib;
  ib.hca = settings.ib_hca;
  ib.gid_index = settings.ib_gid_index;
  ib.roce_version = settings.ib_roce_version;
  ib.address_family = settings.ib_address_family;
  ib.address_range = settings.ib_address_range;
  ib.timeout = settings.ib_timeout;
  ib.retry_count = settings.ib_retry_count;
  ib.keepalive_ms = settings.ib_keepalive_ms;
  ib.service_level = settings.ib_service_level;
  ib.traffic_class = settings.ib_traffic_class;
  ib.pkey_index = settings.ib_pkey;
  ib.rails = settings.ib_rails;
  ib.qps_per_connection = settings.ib_qps;
  ib.split_data = settings.ib_split != 0;
  ib.adaptive_routing = settings.ib_adaptive_routing;
  ib.adaptive_threshold = settings.ib_adaptive_threshold;
  ib.relaxed_ordering = settings.ib_relaxed_ordering;
  ib.registration_cache = settings.ib_registration_cache;
  return ib;
}

transport::Options transport_options(const config::Settings& settings, int world_size) {
  transport::Options options;
  options.bind_address = settings.interface;
  options.link_mbps = settings.link_mbps;
  options.link_us = settings.link_us;
  options.ranks_per_node = static_cast<int>(settings.ranks_per_node);
  options.world_size = world_size;
  options.ib = ib_options(settings);
  return options;
}

}  // namespace bitrail::api
