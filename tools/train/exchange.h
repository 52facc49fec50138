// The data-parallel side through BitRail's public API: communicator, optimizer, and what one step
// puts on the wire.
#pragma once

#include <bitrail/bitrail.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/train/options.h"
#include "tools/train/parameters.h"
#include "tools/train/report.h"
#include "tools/train/storage.h"

namespace bitrail::train {

struct CommDestroy {
  void operator()(bitrail_comm_t comm) const { bitrail_comm_destroy(comm); }
};
struct OptimizerDestroy {
  void operator()(bitrail_optimizer_t optimizer) const { bitrail_optimizer_destroy(optimizer); }
};
struct ErrorsDestroy {
  void operator()(bitrail_error_state_t errors) const { bitrail_error_state_destroy(errors); }
};
using CommPtr = std::unique_ptr<bitrail_comm, CommDestroy>;
using OptimizerPtr = std::unique_ptr<bitrail_optimizer, OptimizerDestroy>;
using ErrorsPtr = std::unique_ptr<bitrail_error_state, ErrorsDestroy>;

// Status of a call of the public API, with its text and what was tried.
Status Checked(bitrail_status_t status, const char* what);

// Joins the job that the launcher or the environment describes.
Status Join(CommPtr* comm);
// Averages `values` over the ranks.
Status Average(bitrail_comm_t comm, std::vector<float>* values);

class Exchange {
 public:
  // Makes the optimizer on `comm`; `comm`, `layout` and `parameters` are borrowed.
  static Status Create(bitrail_comm_t comm, const TrainOptions& options, const Layout& layout,
                       Storage* parameters, std::unique_ptr<Exchange>* exchange);

  // One step of the parameters from this rank's gradient (which it uses as scratch). Fills what
  // *record says of the exchange: wire bytes for gradient and update, kind, loss scale, skipped.
  Status Step(double lr, float* gradient, StepRecord* record);

  // Everything that the run needs but its options: parameters, optimizer, errors. Collective.
  Status Save(const std::string& folder);
  Status Load(const std::string& folder, bool reset_errors);
  // Training steps behind it, skipped ones included.
  int64_t StepsTaken() const;

  bitrail_optimizer_t optimizer() const { return optimizer_.get(); }

 private:
  Exchange(bitrail_comm_t comm, const Layout& layout, Storage* parameters)
      : comm_(comm), layout_(layout), parameters_(parameters) {}
  Status MakeOptimizer(const TrainOptions& options);
  Status MakeErrors(const TrainOptions& options);
  // The gradient as it travels: float32 as it is, or rounded into half_.
  void* Encode(float* gradient, double scale);
  Status ShareNaively(void* gradient);
  Status WireBytes(uint64_t* bytes) const;

  bitrail_comm_t comm_;
  const Layout& layout_;
  Storage* parameters_;
  std::vector<std::vector<float>> masks_;  // a segment; empty: none
  OptimizerPtr optimizer_;
  bool init_call_ = false;  // counted as a step by the optimizer
  bool naive_ = false;
  ErrorsPtr errors_;            // naive only, more than one rank
  std::vector<uint16_t> half_;  // the gradient in 16 bits
};

}  // namespace bitrail::train
