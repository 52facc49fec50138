// The data-parallel side through BitRail's public API: communicator, optimizer, and what one step
// puts on the wire.
#pragma once

#include <bitrail/bitrail.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/train/options.h"
#include "tools/train/parameters.h"

namespace bitrail::train {

struct CommDestroy {
  void operator()(bitrail_comm_t comm) const { bitrail_comm_destroy(comm); }
};
struct OptimizerDestroy {
  void operator()(bitrail_optimizer_t optimizer) const { bitrail_optimizer_destroy(optimizer); }
};
using CommPtr = std::unique_ptr<bitrail_comm, CommDestroy>;
using OptimizerPtr = std::unique_ptr<bitrail_optimizer, OptimizerDestroy>;

// Status of a call of the public API, with its text and what was tried.
Status Checked(bitrail_status_t status, const char* what);

class Exchange {
 public:
  // Joins the job that the launcher or the environment describes.
  static Status Join(CommPtr* comm);
  // Makes the optimizer on `comm`; both `parameters` and `comm` are borrowed.
  static Status Create(bitrail_comm_t comm, const TrainOptions& options, const Layout& layout,
                       float* parameters, std::unique_ptr<Exchange>* exchange);

  // The next step sends 1 bit a value.
  bool compressed() const { return bitrail_optimizer_frozen(optimizer_.get()) != 0; }
  // Averages the gradient over the ranks if the optimizer wants the mean (in place), then takes the
  // step. *wire_bytes: payload this rank sent for the two.
  Status Step(double lr, float* gradient, uint64_t* wire_bytes);
  // Averages `values` over the ranks, outside of what Step counts.
  Status Average(std::vector<float>* values);

  uint64_t state_bytes() const { return bitrail_optimizer_state_bytes(optimizer_.get()); }

 private:
  Exchange(bitrail_comm_t comm, OptimizerPtr optimizer, size_t count)
      : comm_(comm), optimizer_(std::move(optimizer)), count_(count) {}
  Status WireBytes(uint64_t* bytes) const;

  bitrail_comm_t comm_;
  OptimizerPtr optimizer_;
  size_t count_;
};

}  // namespace bitrail::train
