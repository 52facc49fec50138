// Error state: create, reset, save, load, look at.
#include "runtime/api/error_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/host/scale.h"
#include "runtime/api/result.h"

namespace bitrail::api {
namespace {

constexpr uint64_t kMagic = 0x31'52'52'45'4c'52'42'01;  // "BRLERR1"
// What callers compiled against an earlier header pass.
constexpr size_t kLeastLayout = offsetof(bitrail_onebit_layout_t, padding);
constexpr uint64_t kLeastBlock = 1024, kMostBlock = 65536, kDefaultBlock = 4096;

// Front of a saved state. Little endian, as every machine this runs on.
struct Header {
  uint64_t magic = kMagic;
  uint32_t rank = 0, world_size = 1;
  uint64_t segments = 0, layout_hash = 0, worker = 0, server = 0;
};

uint64_t layout_hash(const engine::OnebitLayout& layout) {
  uint64_t hash = (layout.l1 ? 1u : 2u) + (layout.tight ? 2u : 0u);
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + 1; };
  mix(layout.block);
  for (const engine::Segment& segment : layout.segments) mix(segment.count);
  return hash;
}

// Of the layout and the form.
uint64_t state_hash(const bitrail_error_state& state) {
  const uint64_t hash = layout_hash(state.layout);
  if (state.layout.rails == 0) return hash;
  const auto rails = static_cast<uint64_t>(state.layout.rails);
  const auto chunks = static_cast<uint64_t>(state.layout.world_size);
  return (hash ^ (rails << 32 ^ chunks << 16 ^ state.own_chunk)) * 0x9E3779B97F4A7C15u;
}

Header header_of(const bitrail_error_state& state) {
  Header header;
  header.rank = static_cast<uint32_t>(state.comm->world.rank);
  header.world_size = static_cast<uint32_t>(state.comm->world.size);
  header.segments = state.layout.tensors;
  header.layout_hash = state_hash(state);
  header.worker = state.worker.size();
  header.server = state.server.size();
  return header;
}

size_t saved_bytes(const bitrail_error_state& state) {
  return sizeof(Header) + (state.worker.size() + state.server.size()) * sizeof(float);
}

// Ranks that do not code have nothing, not even an address.
char* put(const std::vector<float>& values, char* to) {
  const size_t bytes = values.size() * sizeof(float);
  if (bytes != 0) std::memcpy(to, values.data(), bytes);
  return to + bytes;
}
const char* take(const char* from, std::vector<float>* values) {
  const size_t bytes = values->size() * sizeof(float);
  if (bytes != 0) std::memcpy(values->data(), from, bytes);
  return from + bytes;
}

bitrail_padding_t padding_of(const bitrail_onebit_layout_t& layout) {
  return layout.struct_size >= sizeof layout ? layout.padding : BITRAIL_PADDING_DEEPSPEED;
}

Status check_layout(const bitrail_onebit_layout_t* layout, uint64_t* block) {
  if (layout == nullptr || layout->struct_size < kLeastLayout)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "layout is NULL or its struct_size is not set");
  if (layout->segments == 0 || layout->counts == nullptr)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "a layout needs at least one segment");
  if (layout->norm != BITRAIL_NORM_L2 && layout->norm != BITRAIL_NORM_L1)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no norm {}",
                   static_cast<int>(layout->norm));
  const bitrail_padding_t padding = padding_of(*layout);
  if (padding != BITRAIL_PADDING_DEEPSPEED && padding != BITRAIL_PADDING_TIGHT)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no padding {}",
                   static_cast<int>(padding));
  *block = 0;
  if (layout->scale == BITRAIL_SCALE_SEGMENT) return {};
  if (layout->scale != BITRAIL_SCALE_BLOCK)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no scale kind {}",
                   static_cast<int>(layout->scale));
  *block = layout->block == 0 ? kDefaultBlock : layout->block;
  if (*block < kLeastBlock || *block > kMostBlock || (*block & (*block - 1)) != 0)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "block {} is not a power of two of {}..{} (BITRAIL_SCALE_BLOCK)", *block,
                   kLeastBlock, kMostBlock);
  return {};
}

Status load(bitrail_error_state* state, const void* data, size_t bytes) {
  if (bytes != saved_bytes(*state))
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "a saved error state of this layout and {} has {} bytes, not {}",
                   state->algorithm->name, saved_bytes(*state), bytes);
  Header found;
  std::memcpy(&found, data, sizeof(found));
  const Header own = header_of(*state);
  if (found.magic != own.magic)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "this is no saved error state");
  if (found.rank != own.rank || found.world_size != own.world_size)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "the saved error state is of rank {} of {}, this is rank {} of {}", found.rank,
                   found.world_size, own.rank, own.world_size);
  if (found.segments != own.segments || found.layout_hash != own.layout_hash ||
      found.worker != own.worker || found.server != own.server)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "the saved error state has another layout (segments, scale, norm or block) or "
                   "another form than {}'s (BITRAIL_ALGO, the placement of ranks on nodes)",
                   state->algorithm->name);
  const char* from = static_cast<const char*>(data) + sizeof(Header);
  std::vector<float> worker(state->worker.size()), server(state->server.size());
  take(take(from, &worker), &server);
  for (const std::vector<float>* values : {&worker, &server})
    if (!std::isfinite(kernels::SquaredSum(values->data(), nullptr, values->size())))
      return Status(BITRAIL_ERR_NOT_FINITE, "the saved error state holds NaN or Inf");
  state->worker = std::move(worker);
  state->server = std::move(server);
  state->broken = false;
  return {};
}

// Which algorithm, from facts that all ranks share, and what part this rank has in it.
Status find_form(bitrail_comm* comm, bitrail_error_state* state) {
  engine::OnebitLayout& layout = state->layout;
  planner::Request request;
  request.collective = schedule::Collective::onebit_allreduce;
  request.world_size = comm->world.size;
  request.rank = comm->world.rank;
  request.count = layout.padded();
  request.bytes = layout.padded() * sizeof(float);
  request.block_scale = layout.block != 0;
  request.placement = &comm->placement;
  planner::Choice choice;
  BITRAIL_TRY(planner::choose(request, comm->settings.algo, comm->settings.piece, &choice));
  state->algorithm = choice.algorithm;
  const int rails = choice.algorithm->rails ? choice.algorithm->rails(request) : 0;
  if (rails == 0) {
    state->chunks = static_cast<uint64_t>(comm->world.size);
    state->own_chunk = static_cast<uint64_t>(comm->world.rank);
    return {};
  }
  const topology::Placement& placement = comm->placement;
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < layout.tensors; i++) counts.push_back(layout.segments[i].count);
  BITRAIL_TRY(engine::make_layout(rails * placement.nodes(), counts, layout.block, layout.l1,
                                  &layout, layout.tight));
  layout.rails = rails;
  const int local = placement.local_of(comm->world.rank);
  if (local >= rails) return {};
  state->rail = local;
  state->chunks = static_cast<uint64_t>(placement.nodes());
  state->first_chunk = static_cast<uint64_t>(local) * state->chunks;
  state->own_chunk =
      state->first_chunk + static_cast<uint64_t>(placement.node_of(comm->world.rank));
  return {};
}

Status usable(const bitrail_error_state* state) {
  if (state == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "error state is NULL");
  if (state->busy)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "the error state is in use by a call in flight");
  return {};
}

}  // namespace

Status flat_only(const bitrail_error_state& state) {
  if (state.layout.rails == 0) return {};
  return failure(BITRAIL_ERR_UNSUPPORTED,
                 "this error state is {}'s, which has no halves: for reduce-scatter and all-gather "
                 "alone make it with BITRAIL_ALGO=onebit_allreduce:onebit_direct",
                 state.algorithm->name);
}

}  // namespace bitrail::api

using bitrail::failure;
using bitrail::Status;
using bitrail::api::guarded;

extern "C" {

bitrail_status_t bitrail_error_state_create(bitrail_error_state_t* state, bitrail_comm_t comm,
                                            const bitrail_onebit_layout_t* layout) {
  return guarded([&]() -> Status {
    if (state == nullptr || comm == nullptr)
      return Status(BITRAIL_ERR_INVALID_ARGUMENT, "state or comm is NULL");
    *state = nullptr;
    uint64_t block = 0;
    BITRAIL_TRY(bitrail::api::check_layout(layout, &block));
    auto made = std::make_unique<bitrail_error_state>();
    made->comm = comm;
    const std::vector<uint64_t> counts(layout->counts, layout->counts + layout->segments);
    BITRAIL_TRY(bitrail::engine::make_layout(
        comm->world.size, counts, block, layout->norm == BITRAIL_NORM_L1, &made->layout,
        bitrail::api::padding_of(*layout) == BITRAIL_PADDING_TIGHT));
    BITRAIL_TRY(bitrail::api::find_form(comm, made.get()));
    for (const bitrail::engine::Segment& segment : made->layout.segments) {
      const bitrail::engine::Cut own = bitrail::engine::tensor_part(segment, made->own_chunk);
      made->own_offset.push_back(made->own_elements);
      made->own_elements += own.end - own.begin;
    }
    made->worker.assign(made->chunks * made->layout.chunk, 0.0f);
    if (made->chunks != 0) made->server.assign(made->layout.chunk, 0.0f);
    *state = made.release();
    return {};
  });
}

bitrail_status_t bitrail_error_state_destroy(bitrail_error_state_t state) {
  return guarded([&]() -> Status {
    if (state == nullptr) return {};
    BITRAIL_TRY(bitrail::api::usable(state));
    delete state;
    return {};
  });
}

bitrail_status_t bitrail_error_state_reset(bitrail_error_state_t state) {
  return guarded([&]() -> Status {
    BITRAIL_TRY(bitrail::api::usable(state));
    std::fill(state->worker.begin(), state->worker.end(), 0.0f);
    std::fill(state->server.begin(), state->server.end(), 0.0f);
    state->broken = false;
    return {};
  });
}

size_t bitrail_error_state_bytes(bitrail_error_state_t state) {
  return state == nullptr ? 0 : bitrail::api::saved_bytes(*state);
}

bitrail_status_t bitrail_error_state_save(bitrail_error_state_t state, void* data, size_t bytes) {
  return guarded([&]() -> Status {
    BITRAIL_TRY(bitrail::api::usable(state));
    if (data == nullptr || bytes != bitrail::api::saved_bytes(*state))
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "save needs exactly {} bytes of room",
                     bitrail::api::saved_bytes(*state));
    if (state->broken)
      return Status(BITRAIL_ERR_BROKEN,
                    "this error state was in a call that failed half-way: it is not worth saving");
    const bitrail::api::Header header = bitrail::api::header_of(*state);
    char* to = static_cast<char*>(data);
    std::memcpy(to, &header, sizeof(header));
    to += sizeof(header);
    bitrail::api::put(state->server, bitrail::api::put(state->worker, to));
    return {};
  });
}

bitrail_status_t bitrail_error_state_load(bitrail_error_state_t state, const void* data,
                                          size_t bytes) {
  return guarded([&]() -> Status {
    BITRAIL_TRY(bitrail::api::usable(state));
    if (data == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "data is NULL");
    return bitrail::api::load(state, data, bytes);
  });
}

bitrail_status_t bitrail_error_state_norms(bitrail_error_state_t state, double* worker,
                                           double* server) {
  return guarded([&]() -> Status {
    BITRAIL_TRY(bitrail::api::usable(state));
    const auto norm = [](const std::vector<float>& values) {
      return std::sqrt(bitrail::kernels::SquaredSum(values.data(), nullptr, values.size()));
    };
    if (worker != nullptr) *worker = norm(state->worker);
    if (server != nullptr) *server = norm(state->server);
    return {};
  });
}

bitrail_status_t bitrail_onebit_chunk(bitrail_error_state_t state, size_t segment, int rank,
                                      size_t* begin, size_t* end) {
  return guarded([&]() -> Status {
    if (state == nullptr || begin == nullptr || end == nullptr ||
        segment >= state->layout.tensors || rank < 0 || rank >= state->comm->world.size)
      return Status(BITRAIL_ERR_INVALID_ARGUMENT, "onebit_chunk: state, segment or rank is wrong");
    BITRAIL_TRY(bitrail::api::flat_only(*state));
    const bitrail::engine::Cut cut =
        bitrail::engine::tensor_part(state->layout.segments[segment], static_cast<uint64_t>(rank));
    *begin = cut.begin;
    *end = cut.end;
    return {};
  });
}

}  // extern "C"
