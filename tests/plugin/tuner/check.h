// Whether a tuner does what it says, and ways of not doing it.
#pragma once

#include <memory>
#include <string>

#include "tests/plugin/tuner/table.h"

namespace bitrail::test {

// A job's variables for init(), set while this lives.
class Variables {
 public:
  Variables(bool on, const std::string& csv);
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
};

// 64 GPUs on 8 nodes, written once; what Variables names.
std::string topology_file();
// A file of these lines.
std::string csv_file(const std::string& lines);

// Entries that NCCL would have: every pair that exists is available and takes 50 us; CollNet,
// NVLS and PAT as said.
Costs available_costs(bool collnet, bool nvls);

// Empty, or the first thing that is wrong.
std::string check_tuner(TunerTable* table);

enum class TunerFault {
  none,
  resurrects,        // entries of -1 become available
  writes_nothing,    // costs stay NCCL's
  works_when_off,    // costs change though the tuner is off
  smaller_is_later,  // times fall with the bytes
  forgets_rows,      // what a row chose is undone
  last_row_wins,     // another row than the first
  chooses_channels,  // channels change though no row says so
  known_to_all,      // any context will do
  first_context,     // all communicators get the first one's answers
  silent_nulls,      // null arguments are fine
  bytes_per_rank,    // sizes are taken as one rank's
};
constexpr int kTunerFaults = 12;
const char* tuner_fault_name(TunerFault fault);

// A tuner with this fault over `inner`, which has to outlive it.
std::unique_ptr<TunerTable> mutate(TunerTable* inner, TunerFault fault);

}  // namespace bitrail::test
