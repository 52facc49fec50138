#include "runtime/api/module.h"

#include <bitrail/module.h>
#include <dlfcn.h>

#include <mutex>
#include <set>
#include <vector>

#include "runtime/algorithms/parts.h"
#include "runtime/api/result.h"
#include "runtime/planner/registry.h"
#include "runtime/schedule/verify.h"
#include "runtime/trace/log.h"

// Outside the namespace: the C API's opaque type.
struct bitrail_builder {
  bitrail::schedule::Builder builder;
  bitrail::algorithms::CallerBuffers caller;
};

namespace bitrail::api {
namespace {

using algorithms::Request;
using schedule::Range;

bitrail_module_request_t to_c(const Request& request) {
  return {sizeof(bitrail_module_request_t),
          request.rank,
          request.world_size,
          request.root,
          request.count,
          request.bytes,
          request.pieces == 0 ? 1 : request.pieces,
          request.in_place ? 1 : 0,
          request.deterministic ? 1 : 0};
}

Range range_of(const bitrail_module_range_t& range) {
  return {range.buffer, range.slot, range.chunk, range.chunks, range.piece, range.pieces};
}

schedule::Schedule build(const std::string& name, bitrail_module_build_fn function, void* user,
                         const Request& request) {
  bitrail_builder builder{schedule::Builder(algorithms::schedule_name(name.c_str(), request),
                                            request.rank, request.world_size),
                          {}};
  builder.caller = algorithms::caller_buffers(&builder.builder, request);
  const bitrail_module_request_t asked = to_c(request);
  function(user, &asked, &builder);
  return builder.builder.finish();
}

// World sizes and counts at which a module's algorithm is proven before it may run.
Status prove(const algorithms::Algorithm& algorithm) {
  for (int world : {1, 2, 3, 4, 5, 8, 9})
    for (uint32_t pieces : {1u, 3u})
      for (bool in_place : {false, true}) {
        Request request;
        request.collective = algorithm.collective;
        request.world_size = world;
        request.pieces = pieces;
        request.in_place = in_place;
        request.root = world - 1;
        const uint64_t part = 7;
        request.count = part * static_cast<uint64_t>(world);
        request.bytes = request.count * 4;
        if (!algorithm.applies(request)) continue;
        std::vector<schedule::Schedule> ranks;
        for (request.rank = 0; request.rank < world; request.rank++)
          ranks.push_back(algorithm.build(request));
        schedule::Binding binding;
        binding.counts = {request.count, 1};
        const std::vector<std::string> problems =
            schedule::verify(ranks, binding, {algorithm.collective, request.root});
        if (!problems.empty())
          return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                         "algorithm {} of {} is wrong with {} ranks, {} pieces{}: {}",
                         algorithm.name, schedule::collective_name(algorithm.collective), world,
                         pieces, in_place ? ", in place" : "", problems.front());
      }
  return {};
}

Status add(const char* collective, const char* name, bitrail_module_applies_fn applies,
           bitrail_module_build_fn function, void* user) {
  if (collective == nullptr || name == nullptr || applies == nullptr || function == nullptr)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "register_algorithm: an argument is NULL");
  algorithms::Algorithm algorithm;
  algorithm.name = name;
  if (!schedule::parse_collective(collective, &algorithm.collective))
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "register_algorithm: no collective \"{}\"",
                   collective);
  algorithm.applies = [applies, user](const Request& request) {
    const bitrail_module_request_t asked = to_c(request);
    return applies(user, &asked) != 0;
  };
  algorithm.build = [label = algorithm.name, function, user](const Request& request) {
    return build(label, function, user, request);
  };
  BITRAIL_TRY(prove(algorithm));
  log::info("module algorithm {}:{} verified and registered", collective, name);
  return planner::register_algorithm(std::move(algorithm));
}

const bitrail_module_host_t kHost = {
    .struct_size = sizeof(bitrail_module_host_t),
    .version = BITRAIL_MODULE_VERSION,
    .register_algorithm =
        [](const char* collective, const char* name, bitrail_module_applies_fn applies,
           bitrail_module_build_fn function, void* user) {
          return guarded([&] { return add(collective, name, applies, function, user); });
        },
    .input = [](bitrail_builder_t* b) { return b->caller.input; },
    .output = [](bitrail_builder_t* b) { return b->caller.output; },
    .scratch =
        [](bitrail_builder_t* b, const char* name, uint32_t slots, uint32_t fraction) {
          return b->builder.buffer({name, schedule::Role::scratch, schedule::kDataUnit,
                                    schedule::kElements, slots, fraction, 1});
        },
    .send = [](bitrail_builder_t* b, int peer, uint32_t message,
               bitrail_module_range_t from) { b->builder.send(peer, message, range_of(from)); },
    .recv = [](bitrail_builder_t* b, int peer, uint32_t message,
               bitrail_module_range_t into) { b->builder.recv(peer, message, range_of(into)); },
    .copy =
        [](bitrail_builder_t* b, bitrail_module_range_t from, bitrail_module_range_t into) {
          b->builder.add(schedule::kCopy, {range_of(from)}, {range_of(into)});
        },
    .reduce =
        [](bitrail_builder_t* b, const bitrail_module_range_t* sources, size_t count,
           bitrail_module_range_t into) {
          std::vector<Range> reads;
          for (size_t i = 0; i < count; i++) reads.push_back(range_of(sources[i]));
          b->builder.add(schedule::kReduce, std::move(reads), {range_of(into)});
        },
};

// A module stays loaded: its functions are in the registry.
Status load_module(const std::string& path) {
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return failure(BITRAIL_ERR_CONFIG, "BITRAIL_ALGO_PATH: {}", ::dlerror());
  const auto init =
      reinterpret_cast<bitrail_module_init_fn>(::dlsym(module, "bitrail_module_init"));
  if (init == nullptr)
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_ALGO_PATH: {} has no bitrail_module_init", path);
  const bitrail_status_t status = init(&kHost);
  if (status != BITRAIL_OK)
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_ALGO_PATH: {}: {}", path, bitrail_last_error());
  return {};
}

}  // namespace

Status load_modules(const std::string& paths) {
  static std::mutex mutex;
  static std::set<std::string>& loaded = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  for (size_t begin = 0; begin < paths.size();) {
    const size_t end = std::min(paths.find(':', begin), paths.size());
    const std::string path = paths.substr(begin, end - begin);
    begin = end + 1;
    if (path.empty() || loaded.count(path) != 0) continue;
    BITRAIL_TRY(load_module(path));
    loaded.insert(path);
  }
  return {};
}

}  // namespace bitrail::api
