// hwloc's XML (lstopo --of xml), read by hwloc's own importer.
#pragma once

#include "runtime/topology/model.h"
#include "runtime/topology/xml_file.h"

namespace bitrail::topology {

// The importer trusts what it reads: it gets a file only after version, elements and the numbers
// that it computes with have been checked here.
Status read_hwloc_xml(const XmlFile& file, Machine* machine);

}  // namespace bitrail::topology
