#include "optimizers/optimizer.h"

namespace bitrail::optimizers {

StateList ListState(bitrail_optimizer& optimizer, bool frozen) {
  StateList list;
  State& state = optimizer.state;
  StateList of_method;
  optimizer.method->list(state, frozen, &of_method);
  bool apart = false;  // momenta and parameters differ from rank to rank between syncs
  for (const StateScalar& scalar : of_method.scalars) {
    if (scalar.name == "synced") apart = *std::get<int64_t*>(scalar.value) == 0;
  }
  list.tensors.push_back({"param", state.params, state.elements(), apart, false});
  list.add("exp_avg", state.m, apart);
  list.add("exp_avg_sq", state.v);
  for (StateTensor& tensor : of_method.tensors) list.tensors.push_back(std::move(tensor));
  for (StateScalar& scalar : of_method.scalars) list.scalars.push_back(std::move(scalar));
  optimizer.precision.loss_scale.List(&list);
  return list;
}

Status StateLoaded(bitrail_optimizer& optimizer, int64_t step, Loaded rule) {
  BITRAIL_TRY(optimizer.method->loaded(optimizer.state, step, rule));
  optimizer.step = step;
  optimizer.replicas.checked = step;
  StoreParameters(optimizer.precision, optimizer.state);
  return {};
}

}  // namespace bitrail::optimizers
