// What a bitrail_comm_t is: a joined job, an engine, and the programs compiled for it so far.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/config/settings.h"
#include "runtime/engine/engine.h"
#include "runtime/planner/choose.h"

namespace bitrail::api {

// What makes two calls run the same program.
struct Shape {
  schedule::Collective collective = schedule::Collective::allreduce;
  bitrail_type_t type = BITRAIL_FLOAT32;
  bitrail_op_t op = BITRAIL_SUM;
  bool in_place = false, deterministic = false, block_scale = false;
  int root = 0;
  uint64_t count = 0;  // of the whole: Symbol kElements
  bool operator==(const Shape&) const = default;
};

struct ShapeHash {
  size_t operator()(const Shape& shape) const {
    const uint64_t bits =
        static_cast<uint64_t>(shape.collective) << 32 | static_cast<uint64_t>(shape.type) << 24 |
        static_cast<uint64_t>(shape.op) << 16 | static_cast<uint64_t>(shape.in_place) << 8 |
        static_cast<uint64_t>(shape.deterministic) << 9 |
        static_cast<uint64_t>(static_cast<uint32_t>(shape.root)) << 40;
    return (shape.count * 0x9E3779B97F4A7C15u) ^ (bits * 0xBF58476D1CE4E5B9u);
  }
};

// A compiled program and the runs of it that are not in flight.
struct Compiled {
  engine::Program program;
  kernels::ReduceFunction reduce = nullptr;      // reducing calls
  kernels::MultiplyFunction multiply = nullptr;  // averages
  uint32_t element_bytes = 4;
  std::vector<std::unique_ptr<engine::Run>> all;
  std::vector<engine::Run*> free;
  engine::Run* take();
  void give(engine::Run* run) { free.push_back(run); }
  bool idle() const { return free.size() == all.size(); }
};

// Last part of creation: the engine over an open context. World, settings, bootstrap and timeout of
// `comm` are set.
Status start(bitrail_comm* comm, std::unique_ptr<transport::Context> context, Deadline deadline);

// Chooses (`algo` is BITRAIL_ALGO or a choice made before), builds and compiles. `binding` says how
// `shape.count` is cut; `salt` goes into the signature.
Status compile(bitrail_comm* comm, const Shape& shape, const schedule::Binding& binding,
               uint64_t salt, const std::string& algo, Compiled* compiled);

}  // namespace bitrail::api

struct bitrail_comm {
  bitrail::config::Settings settings;
  bitrail::bootstrap::World world;
  bitrail::topology::Placement placement;  // equal on all ranks
  int64_t timeout_ms = 0;
  std::string transport;
  std::unique_ptr<bitrail::bootstrap::Bootstrap> bootstrap;
  std::unique_ptr<bitrail::engine::Engine> engine;  // before the bootstrap goes
  std::unordered_map<bitrail::api::Shape, std::unique_ptr<bitrail::api::Compiled>,
                     bitrail::api::ShapeHash>
      programs;                    // bounded: kPrograms in collective.cc
  bitrail::api::Shape last_shape;  // the call before: mostly the same again
  bitrail::api::Compiled* last_compiled = nullptr;
};
