#include "tools/bitrail/topo/topo.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/config/settings.h"
#include "runtime/topology/description.h"
#include "runtime/topology/read.h"
#include "tools/bitrail/topo/draw.h"

namespace bitrail::tool {
namespace {

struct Options {
  std::string file, describe, svg;
  bool json = false;
};

Status read(const Options& options, topology::Cluster* cluster, std::string* origin) {
  if (!options.describe.empty()) {
    *origin = "description";
    return topology::read_description(options.describe, "--describe", cluster);
  }
  if (!options.file.empty()) {
    *origin = options.file;
    return topology::read_file(options.file, cluster);
  }
  config::Settings settings;
  BITRAIL_TRY(config::load(&settings));
  return topology::read_topology(settings, cluster, origin);
}

Status write_file(const std::string& path, const std::string& text) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "we"), &std::fclose);
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!written || std::fclose(file.release()) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "cannot write '{}': {}", path, std::strerror(errno));
  return {};
}

Status show(const Options& options) {
  topology::Cluster cluster;
  std::string origin;
  BITRAIL_TRY(read(options, &cluster, &origin));
  if (!options.svg.empty()) BITRAIL_TRY(write_file(options.svg, topology_svg(cluster, origin)));
  if (options.json) {
    std::fputs(topology_json(cluster, origin).c_str(), stdout);
  } else if (options.svg.empty()) {
    std::fputs(topology_text(cluster, origin).c_str(), stdout);
  }
  return {};
}

}  // namespace

int topo_main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Shows NUMA nodes, PCI switches, GPUs, NVLink and network ports, the path between each two,\n"
      "and the rails. Of this machine, or of the file that BITRAIL_TOPO_FILE or NCCL_TOPO_FILE\n"
      "names: NCCL's topology XML, hwloc's XML (lstopo), or a description.",
      "bitrail topo"};
  CLI::Option* file = app.add_option("--file", options.file, "Show what this file describes");
  app.add_option("--describe", options.describe,
                 "Show this cluster: \"nodes=32 gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G\"")
      ->excludes(file);
  app.add_option("--svg", options.svg, "Write a picture to this file instead of the text");
  app.add_flag("--json", options.json, "Print JSON instead of the text");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (const Status status = show(options); !status.ok()) {
    std::fprintf(stderr, "bitrail topo: %s\n", status.text().c_str());
    return 1;
  }
  return 0;
}

}  // namespace bitrail::tool
