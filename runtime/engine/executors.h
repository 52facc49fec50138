// Which function executes which kind of operation on host lanes. Modules add their own kinds.
#pragma once

#include "runtime/engine/program.h"

namespace bitrail::engine {

// Null when nothing executes this kind.
Executor find_executor(const schedule::OperationKind* kind);
// Adds (or replaces) the executor of a module's kind. Thread safe; call before the first schedule
// with it is compiled.
void register_executor(const schedule::OperationKind* kind, Executor executor);

// exact.cc
void execute_copy(Run& run, const Step& step);
void execute_reduce(Run& run, const Step& step);
// onebit.cc
void execute_scan(Run& run, const Step& step);
void execute_scale(Run& run, const Step& step);
void execute_verdict(Run& run, const Step& step);
void execute_pack(Run& run, const Step& step);
void execute_sign(Run& run, const Step& step);
void execute_residual(Run& run, const Step& step);
void execute_unpack_average(Run& run, const Step& step);
void execute_server_scale(Run& run, const Step& step);
void execute_server_pack(Run& run, const Step& step);
void execute_server_sign(Run& run, const Step& step);
void execute_server_residual(Run& run, const Step& step);
void execute_unpack(Run& run, const Step& step);
void execute_take_average(Run& run, const Step& step);
void execute_load(Run& run, const Step& step);
void execute_node_sum(Run& run, const Step& step);
void execute_join(Run& run, const Step& step);

}  // namespace bitrail::engine
