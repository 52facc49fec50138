#include "runtime/topology/encode.h"

#include <algorithm>
#include <cmath>

#include "runtime/bootstrap/bytes.h"
#include "runtime/topology/check.h"

// Compiled in here, so that nothing is linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bitrail::topology {
namespace {

using bootstrap::put;
using bootstrap::put_text;
using bootstrap::Reader;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kMagic = 0x31746274;  // "tbt1"
constexpr double kMostMegabytes = 4294967295.0;

// MB/s for GB/s, Mbit/s as they are.
void put_speed(Bytes* out, double value, double unit) {
  put(out, static_cast<uint32_t>(std::lround(std::clamp(value * unit, 0.0, kMostMegabytes))));
}

double speed(Reader* in, double unit) { return in->get<uint32_t>() / unit; }

int number(Reader* in) { return in->get<int32_t>(); }

void encode_numa(const Numa& numa, Bytes* out) {
  put(out, numa.id);
  put(out, numa.package);
  put_text(out, numa.arch);
  put_text(out, numa.vendor);
  put(out, numa.family);
  put(out, numa.model);
}

Numa decode_numa(Reader* in) {
  Numa numa;
  numa.id = number(in);
  numa.package = number(in);
  numa.arch = in->text();
  numa.vendor = in->text();
  numa.family = number(in);
  numa.model = number(in);
  return numa;
}

void encode_pci(const Pci& pci, Bytes* out) {
  put_text(out, pci.busid);
  put(out, pci.parent);
  put(out, pci.numa);
  put(out, pci.class_code);
  put(out, static_cast<uint8_t>(pci.kind));
  put_speed(out, pci.bandwidth, 1000);
}

Pci decode_pci(Reader* in, bool* good) {
  Pci pci;
  pci.busid = in->text();
  pci.parent = number(in);
  pci.numa = number(in);
  pci.class_code = in->get<uint32_t>();
  const auto kind = in->get<uint8_t>();
  *good = *good && kind <= static_cast<uint8_t>(PciKind::other);
  pci.kind = *good ? static_cast<PciKind>(kind) : PciKind::other;
  pci.bandwidth = speed(in, 1000);
  return pci;
}

void encode_gpu(const Gpu& gpu, Bytes* out) {
  put_text(out, gpu.name);
  put(out, gpu.pci);
  put(out, gpu.sm);
  put_speed(out, gpu.c2c_bandwidth, 1000);
}

Gpu decode_gpu(Reader* in) {
  Gpu gpu;
  gpu.name = in->text();
  gpu.pci = number(in);
  gpu.sm = number(in);
  gpu.c2c_bandwidth = speed(in, 1000);
  return gpu;
}

void encode_port(const Port& port, Bytes* out) {
  put_text(out, port.name);
  put(out, port.pci);
  put(out, port.numa);
  put(out, port.port);
  put_speed(out, port.mbps, 1);
  put(out, static_cast<uint8_t>(port.rdma));
}

Port decode_port(Reader* in, bool* good) {
  Port port;
  port.name = in->text();
  port.pci = number(in);
  port.numa = number(in);
  port.port = number(in);
  port.mbps = speed(in, 1);
  const auto rdma = in->get<uint8_t>();
  *good = *good && rdma <= 1;
  port.rdma = rdma != 0;
  return port;
}

void encode_link(const NvLink& link, Bytes* out) {
  put(out, link.gpu);
  put(out, static_cast<uint8_t>(link.target));
  put(out, link.peer);
  put(out, link.count);
  put_speed(out, link.bandwidth, 1000);
}

NvLink decode_link(Reader* in, bool* good) {
  NvLink link;
  link.gpu = number(in);
  const auto target = in->get<uint8_t>();
  *good = *good && target <= static_cast<uint8_t>(LinkTarget::processor);
  link.target = *good ? static_cast<LinkTarget>(target) : LinkTarget::gpu;
  link.peer = number(in);
  link.count = number(in);
  link.bandwidth = speed(in, 1000);
  return link;
}

// Count, then the elements. A count that the bytes cannot hold ends the reading with the first
// element that is missing.
template <typename T, typename Element>
void read_all(Reader* in, size_t most, bool* good, std::vector<T>* all, Element element) {
  const auto count = in->get<uint32_t>();
  *good = *good && count <= most;
  for (uint32_t i = 0; i < count && *good; i++) {
    all->push_back(element());
    *good = *good && in->good();
  }
}

template <typename T, typename Element>
void write_all(const std::vector<T>& all, Bytes* out, Element element) {
  put(out, static_cast<uint32_t>(all.size()));
  for (const T& one : all) element(one, out);
}

}  // namespace

std::vector<uint8_t> encode(const Machine& machine) {
  Bytes out;
  put(&out, kMagic);
  write_all(machine.numas, &out, encode_numa);
  write_all(machine.pci, &out, encode_pci);
  write_all(machine.gpus, &out, encode_gpu);
  write_all(machine.ports, &out, encode_port);
  write_all(machine.nvswitches, &out,
            [](const std::string& name, Bytes* bytes) { put_text(bytes, name); });
  write_all(machine.links, &out, encode_link);
  return out;
}

Status decode(std::span<const uint8_t> bytes, const std::string& from, Machine* machine) {
  *machine = {};
  Reader in(bytes);
  bool good = in.get<uint32_t>() == kMagic;
  read_all(&in, kMaxNumas, &good, &machine->numas, [&] { return decode_numa(&in); });
  read_all(&in, kMaxPci, &good, &machine->pci, [&] { return decode_pci(&in, &good); });
  read_all(&in, kMaxGpus, &good, &machine->gpus, [&] { return decode_gpu(&in); });
  read_all(&in, kMaxPorts, &good, &machine->ports, [&] { return decode_port(&in, &good); });
  read_all(&in, kMaxSwitches, &good, &machine->nvswitches, [&] { return in.text(); });
  read_all(&in, kMaxLinks, &good, &machine->links, [&] { return decode_link(&in, &good); });
  if (!good || !in.finished())
    return failure(BITRAIL_ERR_PROTOCOL, "{}: its description of its machine makes no sense", from);
  if (const Status status = check(*machine, from); !status.ok())
    return failure(BITRAIL_ERR_PROTOCOL, "{}", status.text());
  return {};
}

uint64_t hash(const Machine& machine) {
  const Bytes bytes = encode(machine);
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace bitrail::topology
