#include "kernels/host/target.h"

#include <hwy/highway.h>

namespace bitrail::kernels {

std::vector<int64_t> Targets() { return hwy::SupportedAndGeneratedTargets(); }

const char* TargetName(int64_t target) { return hwy::TargetName(target); }

const char* ActiveTarget() {
  const std::vector<int64_t> targets = Targets();
  return targets.empty() ? TargetName(0) : TargetName(targets.front());
}

void ForceTarget(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace bitrail::kernels
