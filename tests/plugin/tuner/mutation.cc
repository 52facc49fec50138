// Ways in which a tuner can be wrong, put between the checks and a good one.
#include <algorithm>
#include <utility>

#include "tests/plugin/tuner/check.h"

namespace bitrail::test {
namespace {

using nccl::Result;

class Mutant : public TunerTable {
 public:
  Mutant(TunerTable* inner, TunerFault fault) : inner_(inner), fault_(fault) {}

  int version() const override { return inner_->version(); }
  const char* name() const override { return inner_->name(); }
  Result init(size_t ranks, size_t nodes, void** context) override {
    if (context == nullptr) {
      return fault_ == TunerFault::silent_nulls ? nccl::kSuccess
                                                : inner_->init(ranks, nodes, nullptr);
    }
    const Result result = inner_->init(ranks, nodes, context);
    ranks_ = ranks;
    if (result == nccl::kSuccess && living_++ == 0) first_ = *context;
    return result;
  }
  Result get(void* context, const Ask& ask, Costs* costs, int* channels) override {
    if (costs == nullptr || channels == nullptr) {
      if (fault_ == TunerFault::silent_nulls) return nccl::kSuccess;
      return inner_->get(context, ask, costs, channels);
    }
    if (fault_ == TunerFault::first_context) context = first_;
    Ask changed = ask;
    if (fault_ == TunerFault::smaller_is_later) changed.bytes = (size_t{1} << 36) / (ask.bytes + 1);
    if (fault_ == TunerFault::bytes_per_rank) changed.bytes *= ranks_;
    if (fault_ == TunerFault::last_row_wins && ask.bytes == 4096) changed.bytes++;
    const Costs before = *costs;
    Result result = inner_->get(context, changed, costs, channels);
    spoil(before, costs, channels);
    if (fault_ == TunerFault::known_to_all && result == nccl::kInvalidArgument) {
      result = nccl::kSuccess;
    }
    return result;
  }
  Result finish(void* context) override {
    if (living_ > 0) living_--;
    return inner_->finish(context);
  }

 private:
  void spoil(const Costs& before, Costs* costs, int* channels) const {
    switch (fault_) {
      case TunerFault::resurrects:
        for (float& cost : *costs) cost = std::max(cost, 1e6F);
        break;
      case TunerFault::writes_nothing:
        *costs = before;
        break;
      case TunerFault::works_when_off:
        if (*costs == before) {
          for (float& cost : *costs) cost = cost < 0 ? cost : cost / 2;
        }
        break;
      case TunerFault::forgets_rows:
        for (float& cost : *costs) cost = cost == 0 ? 1 : cost;
        break;
      case TunerFault::chooses_channels:
        (*channels)++;
        break;
      default:
        break;
    }
  }

  TunerTable* inner_;
  TunerFault fault_;
  size_t ranks_ = 1;
  int living_ = 0;
  void* first_ = nullptr;
};

}  // namespace

const char* tuner_fault_name(TunerFault fault) {
  constexpr const char* kNames[kTunerFaults] = {
      "none",         "resurrects",    "writes_nothing",   "works_when_off", "smaller_is_later",
      "forgets_rows", "last_row_wins", "chooses_channels", "known_to_all",   "first_context",
      "silent_nulls", "bytes_per_rank"};
  return kNames[static_cast<size_t>(fault)];
}

std::unique_ptr<TunerTable> mutate(TunerTable* inner, TunerFault fault) {
  return std::make_unique<Mutant>(inner, fault);
}

}  // namespace bitrail::test
