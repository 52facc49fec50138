// Which transports this build has, and the choice among them.
#include "runtime/trace/log.h"
#include "runtime/transport/emulated/context.h"
#include "runtime/transport/transport.h"

#ifdef BITRAIL_HAS_UCX
#include "runtime/transport/ucx/context.h"
#endif
#ifdef BITRAIL_HAS_VERBS
#include "runtime/transport/verbs/context.h"
#include "runtime/transport/verbs/device.h"
#endif

namespace bitrail::transport {

std::vector<Availability> available() {
  std::vector<Availability> list;
#ifdef BITRAIL_HAS_UCX
  list.push_back(ucx::availability());
#else
  list.push_back({"ucx", false, "not built in (needs libucx-dev, meson option ucx)"});
#endif
#ifdef BITRAIL_HAS_VERBS
  list.push_back(verbs::availability({}));
#else
  list.push_back({"verbs", false, "not built in (needs libibverbs-dev, meson option verbs)"});
#endif
  return list;
}

std::vector<std::string> verbs_ports([[maybe_unused]] const Options& options) {
#ifdef BITRAIL_HAS_VERBS
  return verbs::describe_ports(options.ib);
#else
  return {"not built in (needs libibverbs-dev, meson option verbs)"};
#endif
}

namespace {

Status open_plain(const std::string& name, const Options& options,
                  std::unique_ptr<Context>* context) {
#ifdef BITRAIL_HAS_VERBS
  if (name == "verbs") return verbs::open_context(options, context);
  if (name == "auto") {
    const Status status = verbs::open_context(options, context);
    if (status.ok()) return {};
    log::info("transport auto: not verbs: {}", status.text());
  }
#endif
#ifdef BITRAIL_HAS_UCX
  if (name == "ucx" || name == "auto") return ucx::open_context(options, context);
#endif
  std::string known = "auto";
  for (const Availability& transport : available()) {
    if (transport.name == name || (name == "auto" && !transport.available)) {
      return failure(BITRAIL_ERR_UNSUPPORTED, "transport {}: {}", transport.name, transport.detail);
    }
    known += ", " + transport.name;
  }
  return failure(BITRAIL_ERR_CONFIG, "BITRAIL_TRANSPORT={}: unknown; this build knows {}", name,
                 known);
}

}  // namespace

Status open(const std::string& name, const Options& options, std::unique_ptr<Context>* context) {
  context->reset();
  if (options.link_mbps < 0 || options.link_us < 0) {
    return failure(BITRAIL_ERR_CONFIG, "BITRAIL_LINK_MBPS={} BITRAIL_LINK_US={}: not negative",
                   options.link_mbps, options.link_us);
  }
  std::unique_ptr<Context> plain;
  BITRAIL_TRY(open_plain(name, options, &plain));
  if (options.link_mbps == 0 && options.link_us == 0) {
    *context = std::move(plain);
    return {};
  }
  return emulated::wrap(std::move(plain), options, context);
}

}  // namespace bitrail::transport
