#include "runtime/engine/executors.h"

#include <map>
#include <mutex>

namespace bitrail::engine {
namespace {

struct Table {
  std::mutex mutex;
  std::map<const schedule::OperationKind*, Executor> executors;
};

Table& table() {
  static Table* instance = new Table{// never destroyed: modules may outlive static destruction
                                     {},
                                     {{&schedule::kCopy, execute_copy},
                                      {&schedule::kReduce, execute_reduce},
                                      {&schedule::kScan, execute_scan},
                                      {&schedule::kScale, execute_scale},
                                      {&schedule::kVerdict, execute_verdict},
                                      {&schedule::kPack, execute_pack},
                                      {&schedule::kSign, execute_sign},
                                      {&schedule::kResidual, execute_residual},
                                      {&schedule::kUnpackAverage, execute_unpack_average},
                                      {&schedule::kServerScale, execute_server_scale},
                                      {&schedule::kServerPack, execute_server_pack},
                                      {&schedule::kServerSign, execute_server_sign},
                                      {&schedule::kServerResidual, execute_server_residual},
                                      {&schedule::kUnpack, execute_unpack},
                                      {&schedule::kTakeAverage, execute_take_average},
                                      {&schedule::kLoad, execute_load},
                                      {&schedule::kNodeSum, execute_node_sum},
                                      {&schedule::kJoin, execute_join}}};
  return *instance;
}

}  // namespace

Executor find_executor(const schedule::OperationKind* kind) {
  std::lock_guard lock(table().mutex);
  const auto found = table().executors.find(kind);
  return found == table().executors.end() ? nullptr : found->second;
}

void register_executor(const schedule::OperationKind* kind, Executor executor) {
  std::lock_guard lock(table().mutex);
  table().executors[kind] = executor;
}

}  // namespace bitrail::engine
