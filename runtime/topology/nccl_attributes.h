// Attributes of NCCL's topology XML, checked.
#pragma once

#include "runtime/topology/model.h"
#include "runtime/topology/xml_file.h"

namespace bitrail::topology {

// "0000:4f:00.0", also with longer domains; in small letters.
Status read_busid(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  std::string* busid);
// class="0x030200" or tclass; 0 where it is missing.
Status read_class(const XmlFile& file, pugi::xml_node node, const char* attribute,
                  uint32_t* class_code);
// link_speed="16.0 GT/s PCIe" and link_width="16".
Status read_link(const XmlFile& file, pugi::xml_node node, double* bandwidth);
Status read_cpu(const XmlFile& file, pugi::xml_node node, Numa* numa);
Status read_net(const XmlFile& file, pugi::xml_node node, Port* port);
Status read_gpu(const XmlFile& file, pugi::xml_node node, Gpu* gpu);

}  // namespace bitrail::topology
