// What a schedule costs on an alpha-beta-gamma model, all ranks at once, event by event.
//
//   message of m bytes   alpha + m * beta; each rank has one link, its two directions independent,
//                        shared by all its messages in the order in which they become ready
//   compute operation    by its kind's cost, else (bytes read and written) * gamma; one processor
//                        for each lane of each rank, ready operations in the order of their ids
//
// A message leaves when its send is ready whether or not the recv is posted, and takes the
// receiver's link when its first byte arrives.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/timeline.h"

namespace bitrail::schedule {

// Microseconds that `operation` keeps its lane busy.
using CostFunction = double (*)(const Schedule& schedule, const Operation& operation,
                                const Binding& binding);

struct CostModel {
  double alpha = 10;      // us a message is on its way
  double beta = 0.008;    // us a byte: 1 Gbit/s
  double gamma = 0.0001;  // us a byte of memory traffic: 10 GB/s
  // Kinds with costs of their own, a module's for example.
  std::unordered_map<const OperationKind*, CostFunction> kinds;
};

struct Simulation {
  double microseconds = 0;           // until the last operation of the last rank has ended
  std::vector<uint64_t> bytes_sent;  // by rank
  std::vector<uint64_t> bytes_received;
  Timeline timeline;
  bool complete = false;  // false: some operation never became ready; verify tells which
};

// Flat schedules of all ranks.
Simulation simulate(const std::vector<Schedule>& ranks, const Binding& binding,
                    const CostModel& model);

}  // namespace bitrail::schedule
