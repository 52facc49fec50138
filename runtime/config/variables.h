// Every BITRAIL_* variable, described once. The parser, `bitrail info` and the manual come from
// this table; to add a variable, add a member to Settings and a line here.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/config/settings.h"

namespace bitrail::config {

// Which member a value goes to; the alternative is the variable's type.
using Member = std::variant<std::string Settings::*, int64_t Settings::*, double Settings::*>;

struct Variable {
  std::string_view name;
  Member member;
  std::string_view standard;  // the default, parsed like any other value
  double low = 0, high = 0;   // allowed range of numbers, both included
  std::string_view choices;   // allowed words, "A|B|C", in any case; empty: any text
  std::string_view meaning;
  bool hidden = false;  // describe() does not show the value
};

inline constexpr int64_t kMaxRanks = 65'536;

inline constexpr std::array kVariables = {
    Variable{"BITRAIL_DEBUG", &Settings::debug, "WARN", 0, 0, "NONE|WARN|INFO|TRACE",
             "what is written to stderr, one line an event"},
    Variable{"BITRAIL_CONFIG", &Settings::config_file, "", 0, 0, "",
             "file of NAME=VALUE lines with defaults for these variables; the environment wins"},
    Variable{"BITRAIL_TRANSPORT", &Settings::transport, "auto", 0, 0, "auto|ucx|verbs",
             "transport; auto takes verbs where a usable port exists and ucx otherwise"},
    Variable{"BITRAIL_ALGO", &Settings::algo, "", 0, 0, "",
             "algorithms to use instead of the chosen ones: collective:algorithm,..."},
    Variable{"BITRAIL_ALGO_PATH", &Settings::algo_path, "", 0, 0, "",
             "shared objects, separated by ':', that register more algorithms"},
    Variable{"BITRAIL_TOPO_FILE", &Settings::topo_file, "", 0, 0, "",
             "file that describes the machines instead of what is found: NCCL's or hwloc's XML, or "
             "a description; see topology.md"},
    Variable{"BITRAIL_TIMEOUT_MS", &Settings::timeout_ms, "30000", 1, 86'400'000, "",
             "milliseconds without progress after which a wait fails"},
    Variable{"BITRAIL_SECRET", &Settings::secret, "", 0, 0, "",
             "the job's secret, the same at every rank; peers prove it to each other", true},
    Variable{"BITRAIL_JOB_ID", &Settings::job_id, "", 0, 0, "",
             "name of the job, the same at every rank; keeps jobs on one network apart"},
    Variable{"BITRAIL_RENDEZVOUS", &Settings::rendezvous, "", 0, 0, "",
             "host:port where rank 0 listens while the job starts"},
    Variable{"BITRAIL_RANK", &Settings::rank, "-1", -1, kMaxRanks - 1, "",
             "this process's rank, set by `bitrail launch`; -1: from another launcher"},
    Variable{"BITRAIL_WORLD_SIZE", &Settings::world_size, "-1", -1, kMaxRanks, "",
             "number of ranks, set by `bitrail launch`; -1: from another launcher"},
    Variable{"BITRAIL_RANKS_PER_NODE", &Settings::ranks_per_node, "1", 1, kMaxRanks, "",
             "consecutive ranks on one node: they share the card of emulated links, and the "
             "hierarchical "
             "algorithms go by it"},
    Variable{"BITRAIL_INTERFACE", &Settings::interface, "", 0, 0, "",
             "network interface (eth0) or address that peers shall connect to; empty: the one that "
             "reaches rank 0"},
    Variable{"BITRAIL_LINK_MBPS", &Settings::link_mbps, "0", 0, 1e7, "",
             "emulated link: megabits a second of each node's card and direction; 0: none"},
    Variable{"BITRAIL_LINK_US", &Settings::link_us, "0", 0, 1e7, "",
             "emulated link: one-way delay in microseconds; 0: none"},
    Variable{"BITRAIL_PIECE", &Settings::piece, "0", 0, 1 << 30, "",
             "elements in one pipelined piece of a large collective; 0: chosen by size"},
    Variable{"BITRAIL_COUNTERS", &Settings::counters_file, "", 0, 0, "",
             "file that gets the counters as JSON when a communicator ends; %r becomes the rank"},
    Variable{"BITRAIL_CHECK_REPLICAS", &Settings::check_replicas, "0", 0, 1 << 30, "",
             "optimizer steps after which a hash of the parameters is compared over the ranks; 0: "
             "never"},
    Variable{
        "BITRAIL_COLLNET", &Settings::collnet, "off", 0, 0, "off|exact|onebit",
        "what the NCCL plugin offers as CollNet; onebit: sums of registered buffers in 1 bit a "
        "value, with error feedback"},
    Variable{"BITRAIL_TUNER", &Settings::tuner, "0", 0, 1, "",
             "1: the NCCL plugin writes the times it predicts into NCCL's table of costs"},
    Variable{"BITRAIL_TUNER_CSV", &Settings::tuner_csv, "", 0, 0, "",
             "file of rows that choose NCCL's algorithm, protocol and channels by size; see "
             "nccl-plugin.md"},
    Variable{
        "BITRAIL_IB_HCA", &Settings::ib_hca, "", 0, 0, "",
        "InfiniBand and RoCE ports: device[:port],... by prefix; = in front: whole names, ^ in "
        "front: all but these"},
    Variable{"BITRAIL_IB_GID_INDEX", &Settings::ib_gid_index, "-1", -1, 255, "",
             "index of the port's GID; -1: chosen by the three variables below"},
    Variable{"BITRAIL_IB_ROCE_VERSION", &Settings::ib_roce_version, "2", 1, 2, "",
             "RoCE version preferred when the GID is chosen"},
    Variable{"BITRAIL_IB_ADDRESS_FAMILY", &Settings::ib_address_family, "ipv4", 0, 0, "ipv4|ipv6",
             "address family preferred when the GID is chosen"},
    Variable{"BITRAIL_IB_ADDRESS_RANGE", &Settings::ib_address_range, "", 0, 0, "",
             "range like 10.0.0.0/8 that a chosen GID has to be in; empty: any"},
    Variable{"BITRAIL_IB_TIMEOUT", &Settings::ib_timeout, "20", 1, 31, "",
             "4.096 us * 2^this until an unanswered packet is sent again"},
    Variable{"BITRAIL_IB_RETRY_COUNT", &Settings::ib_retry_count, "7", 0, 7, "",
             "times that a packet is sent again before the connection fails"},
    Variable{"BITRAIL_IB_KEEPALIVE_MS", &Settings::ib_keepalive_ms, "5000", 0, 3'600'000, "",
             "silence in milliseconds after which a peer that something waits for is asked whether "
             "it is there; 0: never"},
    Variable{"BITRAIL_IB_SERVICE_LEVEL", &Settings::ib_service_level, "0", 0, 15, "",
             "InfiniBand service level of the connections"},
    Variable{"BITRAIL_IB_TRAFFIC_CLASS", &Settings::ib_traffic_class, "0", 0, 255, "",
             "traffic class of the packets; on RoCE the IP header's DSCP and ECN byte"},
    Variable{"BITRAIL_IB_PKEY", &Settings::ib_pkey, "0", 0, 65'535, "",
             "index of the partition key"},
    Variable{"BITRAIL_IB_RAILS", &Settings::ib_rails, "4", 1, 4, "",
             "verbs: ports that one connection uses, at most; 1: only the one asked for"},
    Variable{"BITRAIL_IB_QPS", &Settings::ib_qps, "1", 1, 32, "",
             "queue pairs of a connection and port: more spread over more paths of the network"},
    Variable{"BITRAIL_IB_SPLIT", &Settings::ib_split, "0", 0, 1, "",
             "1: each message over all queue pairs of its connection; 0: messages take turns"},
    Variable{"BITRAIL_IB_ADAPTIVE_ROUTING", &Settings::ib_adaptive_routing, "auto", 0, 0,
             "auto|on|off",
             "whether the network may reorder packets of a message; auto: on InfiniBand"},
    Variable{"BITRAIL_IB_ADAPTIVE_THRESHOLD", &Settings::ib_adaptive_threshold, "8192", 0, 1 << 30,
             "", "bytes above which it may"},
    Variable{"BITRAIL_IB_RELAXED_ORDERING", &Settings::ib_relaxed_ordering, "auto", 0, 0,
             "auto|on|off",
             "PCI relaxed ordering of received data; auto: where the library has it"},
    Variable{"BITRAIL_IB_REGISTRATION_CACHE", &Settings::ib_registration_cache, "65536", 0, 1 << 24,
             "", "most memory registrations kept while nobody uses them"},
};

// One NAME=VALUE, from the environment or the file. `where` is for messages: "the environment",
// "job.conf:3".
struct Assignment {
  std::string name, value, where;
  Origin origin = Origin::environment;
};

const Variable* find(std::string_view name);
// A name that the file may hold for somebody else: NCCL_*.
inline bool is_other(std::string_view name) { return name.starts_with("NCCL_"); }
// Sets one member, checked against type, range and choices: BITRAIL_ERR_CONFIG otherwise.
Status assign(const Variable& variable, std::string_view value, const std::string& where,
              Settings* settings);
// Defaults, then `assignments` in their order (an empty value leaves the default). Names that start
// with BITRAIL_ and are not in the table go to *unknown (may be null).
Status apply(const std::vector<Assignment>& assignments, Settings* settings,
             std::vector<Assignment>* unknown);

// load() with further defaults, for programs that take theirs from somewhere else: they win over
// the table's and yield to file and environment.
Status load(const std::vector<Assignment>& defaults, Settings* settings);

}  // namespace bitrail::config
