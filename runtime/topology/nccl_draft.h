// A machine while it is read from NCCL's XML.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/topology/model.h"
#include "runtime/topology/xml_file.h"

namespace bitrail::topology {

struct Draft {
  Machine machine;
  std::string host;                              // host_hash
  std::map<std::string, pugi::xml_node> seen;    // by bus id, to tell of doubles
  std::map<std::string, int> gpu_at, switch_at;  // by bus id
  std::vector<pugi::xml_node> gpus;              // the element of each; null: known by class
};

// The number of this NVSwitch in the machine.
int nvswitch_number(const std::string& busid, Draft* draft);
// Reads the NVLink (and xgmi) elements of all GPUs, once all GPUs are known.
Status read_links(const XmlFile& file, Draft* draft);

}  // namespace bitrail::topology
