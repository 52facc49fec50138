// Small machines for tests, as NCCL's XML.
#pragma once

#include <string>

namespace bitrail::topology {

// Two GPUs behind a switch with a NIC; a third on the other node without one. NVLink joins gpu0 and
// gpu2, gpu2 and gpu1.
inline std::string three_gpus() {
  return R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="70" rank="0">
          <nvlink target="0000:81:00.0" count="2" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="70" rank="1">
          <nvlink target="0000:81:00.0" count="1" tclass="0x030200"/>
        </gpu>
      </pci>
      <pci busid="0000:13:00.0" class="0x020000" link_speed="8.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" speed="100000" port="1" guid="0x1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:81:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="70" rank="2">
        <nvlink target="0000:11:00.0" count="2" tclass="0x030200"/>
        <nvlink target="0000:12:00.0" count="1" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
)";
}

// Two hosts of one GPU each, joined by an NVSwitch; the GPU reaches its processor by C2C.
inline std::string two_trays() {
  std::string text = "<system version=\"1\">\n";
  for (const char* host : {"0xa", "0xb"})
    text += std::string("<cpu host_hash=\"") + host + R"(" numaid="0" arch="arm64">
  <pci busid="0008:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="4">
    <gpu dev="0" sm="103">
      <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/><c2c bw="44712" count="5"/>
    </gpu>
  </pci>
  <pci busid="0016:01:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16">
    <nic><net name="mlx5_0" speed="200000" port="1"/></nic>
  </pci>
</cpu>
)";
  return text + "</system>\n";
}

}  // namespace bitrail::topology
