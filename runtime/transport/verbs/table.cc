#include "runtime/transport/verbs/table.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bitrail::transport::verbs {
namespace {

// Reads a short sysfs file; 0 or errno. EINVAL is what the kernel answers for an index that has no
// GID, and in a container for one that belongs to another network namespace.
int read_line(const char* path, char* text, size_t bytes) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t got = read(fd, text, bytes - 1);
  const int error = got < 0 ? errno : 0;
  close(fd);
  text[got < 0 ? 0 : got] = 0;
  return error;
}

int query_gid_version(ibv_context* context, uint8_t port, int index, int* version) {
  char path[PATH_MAX], text[32];
  const int length = snprintf(path, sizeof(path), "%s/ports/%d/gid_attrs/types/%d",
                              context->device->ibdev_path, static_cast<int>(port), index);
  if (length < 0 || length >= static_cast<int>(sizeof(path))) return ENAMETOOLONG;
  const int error = read_line(path, text, sizeof(text));
  if (error != 0) return error;
  if (strncmp(text, "RoCE v2", 7) == 0) {
    *version = 2;
  } else if (strncmp(text, "IB/RoCE v1", 10) == 0) {
    *version = 1;
  } else {
    return EINVAL;
  }
  return 0;
}

int pci_path(ibv_device* device, char* path, size_t bytes) {
  char link[PATH_MAX];
  const int length = snprintf(link, sizeof(link), "%s/device", device->ibdev_path);
  if (length < 0 || length >= static_cast<int>(sizeof(link))) return -1;
  char* resolved = realpath(link, nullptr);
  if (resolved == nullptr) return -1;
  const bool fits = strlen(resolved) < bytes;
  if (fits) memcpy(path, resolved, strlen(resolved) + 1);
  free(resolved);
  return fits ? 0 : -1;
}

// Several names of verbs.h are macros or inline functions, so each gets a function of its own.
constexpr Table library_table() {
  Table t{};
  t.get_device_list = ibv_get_device_list;
  t.free_device_list = ibv_free_device_list;
  t.get_device_name = ibv_get_device_name;
  t.open_device = ibv_open_device;
  t.close_device = ibv_close_device;
  t.query_device = ibv_query_device;
  t.query_port = [](ibv_context* context, uint8_t port, ibv_port_attr* attributes) {
    return ibv_query_port(context, port, attributes);
  };
  t.query_gid = ibv_query_gid;
  t.query_gid_version = query_gid_version;
  t.query_pkey = [](ibv_context* context, uint8_t port, int index, uint16_t* pkey) {
    return ibv_query_pkey(context, port, index, pkey);
  };
  t.pci_path = pci_path;
  t.alloc_pd = ibv_alloc_pd;
  t.dealloc_pd = ibv_dealloc_pd;
  t.reg_mr = [](ibv_pd* pd, void* address, size_t bytes, int access) {
    return ibv_reg_mr(pd, address, bytes, access);
  };
  t.reg_mr_iova2 = ibv_reg_mr_iova2;
  t.reg_dmabuf_mr = ibv_reg_dmabuf_mr;
  t.dereg_mr = ibv_dereg_mr;
  t.create_comp_channel = ibv_create_comp_channel;
  t.destroy_comp_channel = ibv_destroy_comp_channel;
  t.create_cq = ibv_create_cq;
  t.destroy_cq = ibv_destroy_cq;
  t.req_notify_cq = [](ibv_cq* cq, int solicited) { return ibv_req_notify_cq(cq, solicited); };
  t.get_cq_event = ibv_get_cq_event;
  t.ack_cq_events = ibv_ack_cq_events;
  t.poll_cq = [](ibv_cq* cq, int entries, ibv_wc* done) { return ibv_poll_cq(cq, entries, done); };
  t.create_qp = ibv_create_qp;
  t.modify_qp = ibv_modify_qp;
  t.query_qp = ibv_query_qp;
  t.destroy_qp = ibv_destroy_qp;
  t.post_send = [](ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) {
    return ibv_post_send(qp, work, bad);
  };
  t.post_recv = [](ibv_qp* qp, ibv_recv_wr* work, ibv_recv_wr** bad) {
    return ibv_post_recv(qp, work, bad);
  };
  t.get_async_event = ibv_get_async_event;
  t.ack_async_event = ibv_ack_async_event;
  t.fork_init = ibv_fork_init;
  return t;
}

constexpr Table kLibrary = library_table();
constinit const Table* g_table = &kLibrary;
constinit unsigned g_generation = 0;

}  // namespace

const Table& table() { return *g_table; }

void replace_table(const Table* table) {
  g_table = table != nullptr ? table : &kLibrary;
  g_generation++;
}

unsigned table_generation() { return g_generation; }

}  // namespace bitrail::transport::verbs
