#include "runtime/api/ib_options.h"

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
  ib.service_level = settings.ib_service_level;
  ib.traffic_class = settings.ib_traffic_class;
  ib.pkey_index = settings.ib_pkey;
  ib.qps_per_connection = settings.ib_qps;
  ib.split_data = settings.ib_split != 0;
  ib.adaptive_routing = settings.ib_adaptive_routing;
  ib.adaptive_threshold = settings.ib_adaptive_threshold;
  ib.relaxed_ordering = settings.ib_relaxed_ordering;
  ib.registration_cache = settings.ib_registration_cache;
  return ib;
}

}  // namespace bitrail::api
