// NCCL's topology XML, as NCCL_TOPO_DUMP_FILE writes it and NCCL_TOPO_FILE reads it; also what
// RCCL (version 2, xgmi) and FlagCX (apu) write.
#pragma once

#include "runtime/topology/model.h"
#include "runtime/topology/xml_file.h"

namespace bitrail::topology {

// One machine for each host_hash in the file. Devices without a gpu, nic or net element are known
// by their PCI class; those of no known class stay in the tree and draw a note.
Status read_nccl(const XmlFile& file, Cluster* cluster);

}  // namespace bitrail::topology
