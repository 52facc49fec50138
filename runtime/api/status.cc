#include <cstdio>

#include "runtime/api/result.h"

namespace bitrail::api {
namespace {

// A fixed buffer, so that reporting an error cannot fail for want of memory and needs no destructor
// at thread exit.
thread_local char last_error[2048];

}  // namespace

bitrail_status_t result(const Status& status) {
  if (!status.ok()) std::snprintf(last_error, sizeof(last_error), "%s", status.text().c_str());
  return status.code();
}

}  // namespace bitrail::api

extern "C" {

const char* bitrail_last_error(void) { return bitrail::api::last_error; }

const char* bitrail_version(void) { return BITRAIL_VERSION; }

const char* bitrail_status_string(bitrail_status_t status) {
  switch (status) {
    case BITRAIL_OK:
      return "ok";
    case BITRAIL_IN_PROGRESS:
      return "in progress";
    case BITRAIL_ERR_INVALID_ARGUMENT:
      return "invalid argument";
    case BITRAIL_ERR_UNSUPPORTED:
      return "unsupported";
    case BITRAIL_ERR_NO_MEMORY:
      return "out of memory";
    case BITRAIL_ERR_SYSTEM:
      return "system error";
    case BITRAIL_ERR_TIMEOUT:
      return "timed out";
    case BITRAIL_ERR_PEER_LOST:
      return "peer lost";
    case BITRAIL_ERR_MISMATCH:
      return "ranks disagree about a call";
    case BITRAIL_ERR_NOT_FINITE:
      return "data is not finite";
    case BITRAIL_ERR_BROKEN:
      return "broken by an earlier failure";
    case BITRAIL_ERR_ABORTED:
      return "aborted";
    case BITRAIL_ERR_CONFIG:
      return "unusable configuration";
    case BITRAIL_ERR_SECRET_MISSING:
      return "job secret missing";
    case BITRAIL_ERR_SECRET_WRONG:
      return "job secret wrong";
    case BITRAIL_ERR_JOB_ID:
      return "wrong job id";
    case BITRAIL_ERR_RANK_TAKEN:
      return "rank taken twice";
    case BITRAIL_ERR_WORLD_SIZE:
      return "ranks disagree about the world size";
    case BITRAIL_ERR_PROTOCOL:
      return "peer does not speak this protocol";
    case BITRAIL_ERR_INTERNAL:
      return "internal error";
  }
  return "unknown status";
}

size_t bitrail_type_size(bitrail_type_t type) {
  switch (type) {
    case BITRAIL_FLOAT32:
    case BITRAIL_INT32:
      return 4;
    case BITRAIL_FLOAT16:
    case BITRAIL_BFLOAT16:
      return 2;
    case BITRAIL_FLOAT64:
    case BITRAIL_INT64:
      return 8;
    case BITRAIL_UINT8:
      return 1;
  }
  return 0;
}

}  // extern "C"
