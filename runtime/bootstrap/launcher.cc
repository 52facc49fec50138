#include "runtime/bootstrap/launcher.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/config/variables.h"

namespace bitrail::bootstrap {
namespace {

// A launcher's variable; nullptr when it is not set or empty.
const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

Status parse(const char* name, const char* value, int64_t low, int64_t high, int64_t* number) {
  const char* end = value + std::strlen(value);
  const auto parsed = std::from_chars(value, end, *number);
  if (parsed.ec == std::errc() && parsed.ptr == end && *number >= low && *number <= high) return {};
  return failure(BITRAIL_ERR_CONFIG,
                 "{}='{}' (set by the launcher) is not an integer from {} to {}", name,
                 std::string(value).substr(0, 64), low, high);
}

Status rank_and_size(const char* rank_name, const char* size_name, World* world) {
  int64_t rank = 0, size = 0;
  BITRAIL_TRY(parse(size_name, variable(size_name), 1, config::kMaxRanks, &size));
  BITRAIL_TRY(parse(rank_name, variable(rank_name), 0, size - 1, &rank));
  world->rank = static_cast<int>(rank);
  world->size = static_cast<int>(size);
  return {};
}

// Options that a caller filled with an older header are shorter; none exist yet.
Status check_options(const bitrail_comm_options_t& options) {
  if (options.struct_size < sizeof options) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "bitrail_comm_options_t.struct_size is {}, not {}",
                   options.struct_size, sizeof options);
  }
  const bool rank = options.rank >= 0, size = options.world_size >= 0;
  if (rank != size || (rank && options.rank >= options.world_size) ||
      options.world_size > config::kMaxRanks) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "options name rank {} and world size {}: both have to be given, with rank below "
                   "size, or both -1 (from the launcher)",
                   options.rank, options.world_size);
  }
  return {};
}

Status ask_launchers(const config::Settings& settings, World* world) {
  bool found = false;
  BITRAIL_TRY(detect_bitrail(settings, world, &found));
  if (!found) BITRAIL_TRY(detect_torchrun(world, &found));
  if (!found) BITRAIL_TRY(detect_pmix(settings, world, &found));
  if (!found) BITRAIL_TRY(detect_hydra(world, &found));
  if (!found) world->launcher = "single";
  return {};
}

std::string first_of(const char* option, const std::string& setting) {
  return option != nullptr && *option != '\0' ? option : setting;
}

}  // namespace

Status detect_bitrail(const config::Settings& settings, World* world, bool* found) {
  if (settings.rank < 0 && settings.world_size < 0) return {};
  if (settings.rank < 0 || settings.world_size < 1 || settings.rank >= settings.world_size) {
    return failure(BITRAIL_ERR_CONFIG,
                   "BITRAIL_RANK={} and BITRAIL_WORLD_SIZE={} do not fit together: both have to be "
                   "set, with rank below size",
                   settings.rank, settings.world_size);
  }
  world->rank = static_cast<int>(settings.rank);
  world->size = static_cast<int>(settings.world_size);
  world->launcher = "bitrail";
  *found = true;
  return {};
}

Status detect_torchrun(World* world, bool* found) {
  if (variable("RANK") == nullptr || variable("WORLD_SIZE") == nullptr) return {};
  BITRAIL_TRY(rank_and_size("RANK", "WORLD_SIZE", world));
  world->launcher = "torchrun";
  *found = true;
  const char* run = variable("TORCHELASTIC_RUN_ID");
  if (world->job_id.empty() && run != nullptr) world->job_id = run;
  const char* host = variable("MASTER_ADDR");
  const char* port_text = variable("MASTER_PORT");
  if (!world->rendezvous.empty() || world->exchange || host == nullptr || port_text == nullptr) {
    return {};
  }
  int64_t port = 0;
  BITRAIL_TRY(parse("MASTER_PORT", port_text, 1, UINT16_MAX - 1, &port));
  const bool v6 = std::strchr(host, ':') != nullptr;
  world->rendezvous =
      v6 ? fmt::format("[{}]:{}", host, port + 1) : fmt::format("{}:{}", host, port + 1);
  return {};
}

Status detect_hydra(World* world, bool* found) {
  if (variable("PMI_RANK") == nullptr || variable("PMI_SIZE") == nullptr) return {};
  BITRAIL_TRY(rank_and_size("PMI_RANK", "PMI_SIZE", world));
  world->launcher = "hydra";
  *found = true;
  return {};
}

Status detect(const bitrail_comm_options_t* options, const config::Settings& settings,
              World* world) {
  *world = {};
  const bitrail_comm_options_t none{sizeof none, -1,      -1,      nullptr, nullptr,
                                    nullptr,     nullptr, nullptr, 0};
  const bitrail_comm_options_t& given = options != nullptr ? *options : none;
  BITRAIL_TRY(check_options(given));
  world->secret = first_of(given.secret, settings.secret);
  world->job_id = first_of(given.job_id, settings.job_id);
  world->rendezvous = first_of(given.rendezvous, settings.rendezvous);
  if (given.allgather != nullptr) {
    world->exchange = [call = given.allgather, user = given.allgather_user](
                          const void* mine, size_t bytes, void* all) -> Status {
      const int result = call(user, mine, bytes, all);
      if (result == 0) return {};
      return failure(BITRAIL_ERR_SYSTEM, "the caller's all-gather callback returned {}", result);
    };
  }
  if (given.rank >= 0) {
    world->rank = given.rank;
    world->size = given.world_size;
    world->launcher = "callback";
  } else {
    BITRAIL_TRY(ask_launchers(settings, world));
  }
  if (world->size > 1 && world->rendezvous.empty() && !world->exchange) {
    return failure(BITRAIL_ERR_CONFIG,
                   "rank {} of {} ({}) does not know where rank 0 listens: set "
                   "BITRAIL_RENDEZVOUS=host:port (a host name or address of rank 0's host, a free "
                   "port) at every rank",
                   world->rank, world->size, world->launcher);
  }
  return {};
}

}  // namespace bitrail::bootstrap
