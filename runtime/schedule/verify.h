// Runs the schedules of all ranks at once on symbols instead of numbers and says what is wrong.
//
//   structure  ids, slots, peers, chunks in range; every edge points backwards (so no cycle)
//   messages   every send has its recv with the same message and length, and the other way round
//   order      two operations that touch the same elements, one of them writing, have a path in
//              their rank's DAG
//   progress   everything completes even if a send completes only once its recv is posted
//   values     each element of each output holds what the collective promises: each rank's
//              contribution exactly once, or the right source element; nothing is used before it
//              is written
//
// Exact at one Binding; run it at several. Cost: about (operations of a rank)^2 / 64 a rank.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/collective.h"
#include "runtime/schedule/schedule.h"

namespace bitrail::schedule {

struct Promise {
  Collective collective = Collective::allreduce;
  int root = 0;  // broadcast
};

// Empty: all is well. `ranks` by rank; nested schedules are flattened here. Later checks are left
// out where an earlier one failed so that they could not run (structure before all others).
std::vector<std::string> verify(const std::vector<Schedule>& ranks, const Binding& binding,
                                const Promise& promise);

// Single checks of flat schedules, for modules with collectives of their own: append to
// *problems, at most a few lines of one sort.
void verify_structure(const std::vector<Schedule>& ranks, std::vector<std::string>* problems);
void verify_messages(const std::vector<Schedule>& ranks, const Binding& binding,
                     std::vector<std::string>* problems);
void verify_order(const Schedule& rank, const Binding& binding, std::vector<std::string>* problems);
// Progress and values. Without promise: progress, and that nothing unwritten is used.
void verify_values(const std::vector<Schedule>& ranks, const Binding& binding,
                   const Promise* promise, std::vector<std::string>* problems);

// "rank 2 operation 7 (send to 3, message 4)", for texts.
std::string describe(const Schedule& schedule, OperationId id);

}  // namespace bitrail::schedule
