// How the ranks of a job find each other: everybody enlists with rank 0, learns its parent's
// address, and connects to it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/connection.h"

namespace bitrail::bootstrap {

// Ranks below one: the tree of 64 ranks is two deep, of 4,096 four.
inline constexpr int kArity = 8;
inline int parent_of(int rank) { return (rank - 1) / kArity; }
inline int depth_of(int rank) {
  int depth = 0;
  for (; rank > 0; rank = parent_of(rank)) depth++;
  return depth;
}

enum class Role : uint8_t {
  parent,
  child,
  enlisted,  // between rank 0 and a rank that is not its child, until the tree stands
};

struct Member {
  std::unique_ptr<Connection> connection;
  int rank = -1;
  Role role = Role::child;
  std::string address;  // where the rank listened
};

// Proves, enlists, builds the tree. On failure all who can be reached were told. With
// world->exchange, world->secret and world->rendezvous are what rank 0 spread.
Status meet(World* world, const config::Settings& settings, Deadline deadline,
            std::vector<Member>* members);

}  // namespace bitrail::bootstrap
