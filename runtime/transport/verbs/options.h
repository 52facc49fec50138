// What a user may say about InfiniBand and RoCE ports; each member is a BITRAIL_IB_* variable.
#pragma once

#include <cstdint>
#include <string>

namespace bitrail::transport::verbs {

struct IbOptions {
  std::string hca;           // device list: "mlx5_0:1,mlx5_3", "=exact", "^excluded"; prefixes
  int64_t gid_index = -1;    // -1: chosen
  int64_t roce_version = 2;  // preferred by the choice
  std::string address_family = "ipv4";  // preferred by the choice: ipv4, ipv6
  std::string address_range;            // CIDR that a chosen GID must match; empty: any
  int64_t timeout = 20;                 // 4.096 us * 2^timeout until a packet is sent again
  int64_t retry_count = 7;              // times that it is
  int64_t keepalive_ms = 5000;          // silence until a peer that is waited for is asked; 0 never
  int64_t service_level = 0;
  int64_t traffic_class = 0;
  int64_t pkey_index = 0;
  int64_t qps_per_connection = 1;
  int64_t rails = 4;        // ports that one connection uses, at most; 1: only the one asked for
  bool split_data = false;  // each message over all QPs; else messages take turns
  std::string adaptive_routing = "auto";  // on, off; auto: on InfiniBand, off on RoCE
  int64_t adaptive_threshold = 8192;      // bytes above which data and immediate go apart
  std::string relaxed_ordering = "auto";  // on, off, auto: where the provider has it
  int64_t registration_cache = 1 << 16;   // most registrations kept while nobody uses them
};

}  // namespace bitrail::transport::verbs
