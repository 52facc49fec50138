#include "runtime/topology/read.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/topology/check.h"
#include "runtime/topology/description.h"
#ifdef BITRAIL_HAVE_HWLOC
#include "runtime/topology/live.h"
#endif
#ifdef BITRAIL_HAVE_PUGIXML
#include "runtime/topology/nccl_xml.h"
#ifdef BITRAIL_HAVE_HWLOC
#include "runtime/topology/hwloc_xml.h"
#endif
#endif

namespace bitrail::topology {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

#ifdef BITRAIL_HAVE_PUGIXML
Status read_hwloc(const XmlFile& file, Cluster* cluster) {
#ifdef BITRAIL_HAVE_HWLOC
  cluster->nodes = {0};
  cluster->kinds.resize(1);
  return read_hwloc_xml(file, cluster->kinds.data());
#else
  return failure(BITRAIL_ERR_UNSUPPORTED, "{}: hwloc's XML, but BitRail was built without hwloc",
                 file.name);
#endif
}

Status read_xml(std::string text, const std::string& name, Cluster* cluster) {
  XmlFile file;
  BITRAIL_TRY(parse_xml(name, std::move(text), &file));
  const std::string_view root = file.document.document_element().name();
  if (root == "system") return read_nccl(file, cluster);
  if (root == "topology") return read_hwloc(file, cluster);
  return failure(BITRAIL_ERR_CONFIG, "{}: neither NCCL's XML (<system>) nor hwloc's (<topology>)",
                 where(file, file.document.document_element()));
}
#else
Status read_xml(const std::string&, const std::string& name, Cluster*) {
  return failure(BITRAIL_ERR_UNSUPPORTED, "{}: XML, but BitRail was built without pugixml", name);
}
#endif

Status read_here(Cluster* cluster) {
#ifdef BITRAIL_HAVE_HWLOC
  cluster->nodes = {0};
  cluster->kinds.resize(1);
  return read_live(cluster->kinds.data());
#else
  (void)cluster;
  return failure(BITRAIL_ERR_UNSUPPORTED,
                 "BitRail was built without hwloc: BITRAIL_TOPO_FILE has to name a topology");
#endif
}

}  // namespace

Status read_text(std::string text, const std::string& name, Cluster* cluster) {
  *cluster = {};
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos) return failure(BITRAIL_ERR_CONFIG, "{}: empty", name);
  if (text[first] == '<') return read_xml(std::move(text), name, cluster);
  return read_description(text, name, cluster);
}

Status read_file(const std::string& path, Cluster* cluster) {
  struct stat about = {};
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (!file || fstat(fileno(file.get()), &about) != 0)
    return failure(BITRAIL_ERR_CONFIG, "cannot open '{}': {}", path, std::strerror(errno));
  if (S_ISDIR(about.st_mode)) return failure(BITRAIL_ERR_CONFIG, "'{}' is a folder", path);
  std::string text;
  char part[65'536];
  while (const size_t bytes = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, bytes);
    if (text.size() > kMaxBytes)
      return failure(BITRAIL_ERR_CONFIG, "'{}' is larger than {} MiB", path, kMaxBytes >> 20);
  }
  if (std::ferror(file.get()) != 0)
    return failure(BITRAIL_ERR_CONFIG, "cannot read '{}': {}", path, std::strerror(errno));
  return read_text(std::move(text), path, cluster);
}

Status read_topology(const config::Settings& settings, Cluster* cluster, std::string* origin) {
  const char* nccl = std::getenv("NCCL_TOPO_FILE");
  std::string path = settings.topo_file;
  const char* variable = "BITRAIL_TOPO_FILE";
  if (path.empty() && nccl != nullptr && *nccl != '\0') {
    path = nccl;
    variable = "NCCL_TOPO_FILE";
  }
  if (path.empty()) {
    *origin = "this machine";
    return read_here(cluster);
  }
  *origin = fmt::format("{} ({})", path, variable);
  if (const Status status = read_file(path, cluster); !status.ok())
    return failure(status.code(), "{} ({} names the file)", status.text(), variable);
  return {};
}

}  // namespace bitrail::topology
