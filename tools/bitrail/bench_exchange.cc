#include <numeric>

#include "tools/bitrail/bench_job.h"
#include "tools/bitrail/bench_optimizers.h"

namespace bitrail::tools {
namespace {

// Calls that together carry all tensors: one with every tensor, or one for each.
struct Exchange {
  std::vector<bitrail_error_state_t> errors;
  std::vector<size_t> offsets;  // of each call's first value
  nlohmann::json seconds = nlohmann::json::array();
  uint64_t bytes = 0, messages = 0;  // sent by this rank in a round

  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    for (const bitrail_error_state_t state : errors) (void)bitrail_error_state_destroy(state);
  }
};

Status AddCall(const Job& job, const size_t* counts, size_t segments, size_t offset,
               Exchange* exchange) {
  bitrail_onebit_layout_t layout = {};
  layout.struct_size = sizeof layout;
  layout.segments = segments;
  layout.counts = counts;
  bitrail_error_state_t errors = nullptr;
  BITRAIL_TRY(Check(bitrail_error_state_create(&errors, job.comm, &layout)));
  exchange->errors.push_back(errors);
  exchange->offsets.push_back(offset);
  return {};
}

Status Round(const Exchange& exchange, const std::vector<float>& send, std::vector<float>* recv) {
  for (size_t i = 0; i < exchange.errors.size(); i++) {
    bitrail_onebit_call_t call = {};
    call.struct_size = sizeof call;
    call.type = BITRAIL_FLOAT32;
    call.send = send.data() + exchange.offsets[i];
    call.recv = recv->data() + exchange.offsets[i];
    BITRAIL_TRY(Check(bitrail_onebit_allreduce(exchange.errors[i], &call, nullptr)));
  }
  return {};
}

Status Measure(const Job& job, const std::vector<size_t>& counts, int rounds,
               nlohmann::json* result) {
  const size_t elements = std::accumulate(counts.begin(), counts.end(), size_t{0});
  std::vector<float> send(elements), recv(elements);
  uint32_t state = static_cast<uint32_t>(job.rank) + 1;
  for (float& value : send) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  Exchange one, separate;
  BITRAIL_TRY(AddCall(job, counts.data(), counts.size(), 0, &one));
  size_t offset = 0;
  for (const size_t& count : counts) {
    BITRAIL_TRY(AddCall(job, &count, 1, offset, &separate));
    offset += count;
  }
  for (int round = -1; round < rounds; round++) {  // one for warming up
    for (Exchange* exchange : {&one, &separate}) {
      bitrail_counters_t before, after;
      nlohmann::json warm = nlohmann::json::array();
      const auto run = [&]() -> Status {  // without the barriers around
        BITRAIL_TRY(Counters(job, &before));
        BITRAIL_TRY(Round(*exchange, send, &recv));
        return Counters(job, &after);
      };
      BITRAIL_TRY(Timed(job, run, round < 0 ? &warm : &exchange->seconds));
      exchange->bytes = after.wire_bytes_sent - before.wire_bytes_sent;
      exchange->messages = after.messages_sent - before.messages_sent;
    }
  }
  const auto report = [](const Exchange& exchange) {
    return nlohmann::json{
        {"seconds", exchange.seconds}, {"bytes", exchange.bytes}, {"messages", exchange.messages}};
  };
  *result = {{"one", report(one)}, {"separate", report(separate)}};
  return {};
}

}  // namespace

int BenchExchange(const std::vector<uint64_t>& counts, int rounds) {
  return RunJob("exchange", [&](Job& job, nlohmann::json* result) {
    return Measure(job, {counts.begin(), counts.end()}, rounds, result);
  });
}

}  // namespace bitrail::tools
