// The tuner as plain functions, whatever the table's version: contexts of communicators, and what
// becomes of NCCL's cost table.
#pragma once

#include <memory>
#include <vector>

#include "plugin/tuner/cost.h"
#include "plugin/tuner/csv.h"

namespace bitrail::plugin::tuner {

// A communicator's. Nothing of it changes once it is made: NCCL may ask from any thread.
struct Tuner {
  bool on = false;  // BITRAIL_TUNER
  System system;
  std::vector<Row> rows;  // BITRAIL_TUNER_CSV
};

// What init() brings. `domains` and `constants` may be null.
struct Communicator {
  size_t ranks = 0, nodes = 0;
  const nccl::NvlinkDomains* domains = nullptr;
  const nccl::TunerConstants* constants = nullptr;
};

// What getCollInfo() asks.
struct Query {
  int function = 0;
  uint64_t bytes = 0;
  int pipe_ops = 1;
  int registered = kAny;  // 0, 1; kAny where NCCL does not say: rows that ask for one do not fit
};

// init(): kInvalidArgument for a communicator that cannot be, otherwise *context is set. Settings
// or a topology that cannot be read are told in the log: the tuner is off, or goes by the links
// that System begins with.
nccl::Result create(const Communicator& communicator, void** context);
// Null for what is no living context.
Tuner* find(void* context);
// Unknown ones are ignored.
void destroy(void* context);

// Writes predictions over every entry that is available and known; the first row that fits an
// available one then chooses. `costs` is an array of algorithms * protocols. *channels stays as it
// was unless a row says so. Does a row choose?
bool tune(const Tuner& tuner, const Query& query, float* costs, int algorithms, int protocols,
          int* channels);

// For version 2, which brings no table: both stay as they were unless a row or the prediction
// chooses. Predictions choose between trees and rings over LL and Simple only: whether anything
// else that they favour is available NCCL does not say, so that choice is left to it.
void choose(const Tuner& tuner, const Query& query, bool collnet, bool nvls, int* algorithm,
            int* protocol, int* channels);

}  // namespace bitrail::plugin::tuner
