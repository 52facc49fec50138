#include "tests/plugin/tuner/table.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include "plugin/abi/tuner_v2.h"
#include "plugin/abi/tuner_v3.h"
#include "plugin/abi/tuner_v4.h"
#include "plugin/abi/tuner_v5.h"
#include "plugin/abi/tuner_v6.h"

namespace bitrail::test {
namespace {

using nccl::Result;

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
};
Log& the_log() {
  static Log log;
  return log;
}

__attribute__((format(printf, 5, 6))) void logger(nccl::LogLevel /*level*/, unsigned long /*flags*/,
                                                  const char* /*file*/, int /*line*/,
                                                  const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(the_log().mutex);
  the_log().lines.emplace_back(text);
}

template <typename Table, int kVersion>
class Wrapped : public TunerTable {
 public:
  explicit Wrapped(const void* table) : table_(static_cast<const Table*>(table)) {}

  int version() const override { return kVersion; }
  const char* name() const override { return table_->name; }
  Result init(size_t ranks, size_t nodes, void** context) override {
    if constexpr (kVersion >= 5) {
      return table_->init(context, 7, ranks, nodes, logger, nullptr, nullptr);
    } else {
      return table_->init(ranks, nodes, logger, context);
    }
  }
  Result get(void* context, const Ask& ask, Costs* costs, int* channels) override {
    if constexpr (kVersion == 2) {
      return choose(context, ask, costs, channels);
    } else {
      auto** table = reinterpret_cast<float**>(costs == nullptr ? nullptr : costs->data());
      if constexpr (kVersion == 3) {
        return table_->get_coll_info(context, ask.function, ask.bytes, ask.pipe_ops, table,
                                     nccl::kAlgorithms, nccl::kProtocols, channels);
      } else {
        return table_->get_coll_info(context, ask.function, ask.bytes, ask.pipe_ops, table,
                                     nccl::kAlgorithms, nccl::kProtocols, ask.registered, channels);
      }
    }
  }
  Result finish(void* context) override {
    if constexpr (kVersion >= 5) {
      return table_->finalize(context);
    } else {
      return table_->destroy(context);
    }
  }

 private:
  Result choose(void* context, const Ask& ask, Costs* costs, int* channels) {
    if constexpr (kVersion == 2) {
      if (costs == nullptr) {
        return table_->get_coll_info(context, ask.function, ask.bytes, 0, 0, ask.pipe_ops, nullptr,
                                     nullptr, channels);
      }
      int algorithm = -1, protocol = -1;
      const auto there = [&](nccl::Algorithm a) {
        return cost_at(costs, a, nccl::kSimple) != nccl::kIgnored;
      };
      const Result result = table_->get_coll_info(
          context, ask.function, ask.bytes, there(nccl::kCollNetChain) ? 1 : 0,
          there(nccl::kNvls) || there(nccl::kNvlsTree) ? 1 : 0, ask.pipe_ops, &algorithm, &protocol,
          channels);
      if (result != nccl::kSuccess || algorithm < 0 || protocol < 0) return result;
      float& cost = cost_at(costs, algorithm, protocol);
      if (cost != nccl::kIgnored) cost = 0;
      return result;
    }
    return nccl::kInternalError;
  }

  const Table* table_;
};

}  // namespace

const void* tuner_symbol(const char* file, int version) {
  void* plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);  // stays: it is linked with nodelete
  if (plugin == nullptr) {
    (void)std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  return dlsym(plugin, fmt::format("ncclTunerPlugin_v{}", version).c_str());
}

std::unique_ptr<TunerTable> tuner_table(const char* file, int version) {
  const void* table = tuner_symbol(file, version);
  if (table == nullptr) return nullptr;
  switch (version) {
    case 2:
      return std::make_unique<Wrapped<nccl::TunerV2, 2>>(table);
    case 3:
      return std::make_unique<Wrapped<nccl::TunerV3, 3>>(table);
    case 4:
      return std::make_unique<Wrapped<nccl::TunerV4, 4>>(table);
    case 5:
      return std::make_unique<Wrapped<nccl::TunerV5, 5>>(table);
    case 6:
      return std::make_unique<Wrapped<nccl::TunerV6, 6>>(table);
    default:
      return nullptr;
  }
}

std::vector<std::string> take_log() {
  const std::lock_guard lock(the_log().mutex);
  return std::exchange(the_log().lines, {});
}

}  // namespace bitrail::test
