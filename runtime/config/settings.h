// All BITRAIL_* variables, parsed: one plain structure. The table in variables.h says name, type,
// default and meaning of each; nothing else reads the environment for a BITRAIL_ name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::config {

struct Settings {
  std::string debug;           // BITRAIL_DEBUG
  std::string config_file;     // BITRAIL_CONFIG
  std::string transport;       // BITRAIL_TRANSPORT
  std::string algo;            // BITRAIL_ALGO  "allreduce:ring,onebit_allreduce:onebit_direct"
  std::string algo_path;       // BITRAIL_ALGO_PATH
  std::string topo_file;       // BITRAIL_TOPO_FILE
  int64_t timeout_ms = 0;      // BITRAIL_TIMEOUT_MS
  std::string secret;          // BITRAIL_SECRET
  std::string job_id;          // BITRAIL_JOB_ID
  std::string rendezvous;      // BITRAIL_RENDEZVOUS
  int64_t rank = -1;           // BITRAIL_RANK, set by `bitrail launch`
  int64_t world_size = -1;     // BITRAIL_WORLD_SIZE, set by `bitrail launch`
  int64_t ranks_per_node = 0;  // BITRAIL_RANKS_PER_NODE
  std::string interface;       // BITRAIL_INTERFACE
  double link_mbps = 0;        // BITRAIL_LINK_MBPS
  double link_us = 0;          // BITRAIL_LINK_US
  int64_t piece = 0;           // BITRAIL_PIECE elements per pipelined piece; 0 chosen by size
  std::string counters_file;   // BITRAIL_COUNTERS JSON at exit
  int64_t check_replicas = 0;  // BITRAIL_CHECK_REPLICAS steps between two checks; 0 never
  std::string collnet;         // BITRAIL_COLLNET
  int64_t tuner = 0;           // BITRAIL_TUNER
  std::string tuner_csv;       // BITRAIL_TUNER_CSV

  std::string ib_hca;                 // BITRAIL_IB_HCA
  int64_t ib_gid_index = -1;          // BITRAIL_IB_GID_INDEX
  int64_t ib_roce_version = 0;        // BITRAIL_IB_ROCE_VERSION
  std::string ib_address_family;      // BITRAIL_IB_ADDRESS_FAMILY
  std::string ib_address_range;       // BITRAIL_IB_ADDRESS_RANGE
  int64_t ib_timeout = 0;             // BITRAIL_IB_TIMEOUT
  int64_t ib_retry_count = 0;         // BITRAIL_IB_RETRY_COUNT
  int64_t ib_keepalive_ms = 0;        // BITRAIL_IB_KEEPALIVE_MS
  int64_t ib_service_level = 0;       // BITRAIL_IB_SERVICE_LEVEL
  int64_t ib_traffic_class = 0;       // BITRAIL_IB_TRAFFIC_CLASS
  int64_t ib_pkey = 0;                // BITRAIL_IB_PKEY
  int64_t ib_rails = 0;               // BITRAIL_IB_RAILS
  int64_t ib_qps = 0;                 // BITRAIL_IB_QPS
  int64_t ib_split = 0;               // BITRAIL_IB_SPLIT
  std::string ib_adaptive_routing;    // BITRAIL_IB_ADAPTIVE_ROUTING
  int64_t ib_adaptive_threshold = 0;  // BITRAIL_IB_ADAPTIVE_THRESHOLD
  std::string ib_relaxed_ordering;    // BITRAIL_IB_RELAXED_ORDERING
  int64_t ib_registration_cache = 0;  // BITRAIL_IB_REGISTRATION_CACHE
};

// Where a value came from, for `bitrail info`.
enum class Origin { standard, environment, file };

struct Value {
  std::string name, type, text, meaning;
  Origin origin;
};

// Environment over file (BITRAIL_CONFIG) over defaults. Unparsable or out of range:
// BITRAIL_ERR_CONFIG naming variable, value and what is allowed. Unknown BITRAIL_* names: a warning
// with the nearest known name, once a process. An empty value counts as not set. Also sets the log
// level (BITRAIL_DEBUG).
Status load(Settings* settings);
// Every variable with its value and origin, in the table's order.
Status describe(std::vector<Value>* values);

}  // namespace bitrail::config
