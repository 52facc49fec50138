// The table ncclEnvPlugin_v1. NCCL 2.28.9 and later ask it for each of their variables.
#pragma once

#include "plugin/abi/types.h"

namespace bitrail::nccl {

struct EnvV1 {
  const char* name;
  Result (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix);
  Result (*finalize)();                      // when the process ends
  const char* (*get_env)(const char* name);  // null: not set; stays valid until finalize
};
static_assert(sizeof(EnvV1) == 4 * 8 && offsetof(EnvV1, init) == 1 * 8 &&
              offsetof(EnvV1, finalize) == 2 * 8 && offsetof(EnvV1, get_env) == 3 * 8);

}  // namespace bitrail::nccl
