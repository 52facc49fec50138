#include "tools/bitrail/libraries.h"

#include <fmt/core.h>
#include <hwloc.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <openssl/crypto.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#ifdef BITRAIL_HAVE_UCX
#include <ucp/api/ucp.h>
#endif
#ifdef BITRAIL_HAVE_PMIX
#include <pmix.h>
#endif
#ifdef BITRAIL_HAVE_DNNL
#include <dnnl.hpp>
#endif

namespace bitrail::tool {
namespace {

[[maybe_unused]] constexpr const char* kAbsent = "not built in";

std::string ucx_version() {
#ifdef BITRAIL_HAVE_UCX
  return ucp_get_version_string();
#else
  return kAbsent;
#endif
}

std::string pmix_version() {
#ifdef BITRAIL_HAVE_PMIX
  return PMIx_Get_version();
#else
  return kAbsent;
#endif
}

std::string dnnl_version() {
#ifdef BITRAIL_HAVE_DNNL
  const dnnl_version_t* version = dnnl::version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
#else
  return kAbsent;
#endif
}

// Best target of this processor that Highway knows.
std::string highway_version() {
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  return fmt::format("{}.{}.{}, best target here {}", HWY_MAJOR, HWY_MINOR, HWY_PATCH,
                     hwy::TargetName(best));
}

std::string hwloc_version() {
  const unsigned version = hwloc_get_api_version();
  return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
}

}  // namespace

std::vector<Library> libraries() {
  return {{"UCX", ucx_version()},
          {"PMIx", pmix_version()},
          {"oneDNN", dnnl_version()},
          {"Highway", highway_version()},
          {"hwloc", hwloc_version()},
          {"OpenSSL", OpenSSL_version(OPENSSL_VERSION)},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)},
          {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
          {"CLI11", CLI11_VERSION}};
}

}  // namespace bitrail::tool
