// What an optimizer keeps from step to step, by name: for checkpoints and tests.
//
// Arrays are flat over the parameters unless a name says otherwise, so the list of segments tells
// what lies where. Pointers borrow from the optimizer and hold until its next step or load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace bitrail::optimizers {

struct StateTensor {
  std::string name;
  float* data = nullptr;
  size_t count = 0;
  bool per_rank = false;  // otherwise the same bits on every rank
  bool error = false;     // error feedback: left out, and zeroed, by a load that resets errors
};

struct StateScalar {
  std::string name;
  std::variant<int64_t*, double*> value;
};

struct StateList {
  std::vector<StateTensor> tensors;
  std::vector<StateScalar> scalars;

  void add(std::string name, std::vector<float>& values, bool per_rank = false,
           bool error = false) {
    tensors.push_back({std::move(name), values.data(), values.size(), per_rank, error});
  }
  void add(std::string name, int64_t& value) { scalars.push_back({std::move(name), &value}); }
  void add(std::string name, double& value) { scalars.push_back({std::move(name), &value}); }
};

// How a list was filled.
enum class Loaded {
  reset,  // without the errors: DeepSpeed's rule
  exact   // everything, by the same rank of a job of the same size
};

}  // namespace bitrail::optimizers
