// The functions of libibverbs that this transport calls, as a table: the library's own, or a fake's
// (tests/support/fake_verbs.h), which shows what soft RoCE cannot.
//
// Members have libibverbs' names, arguments and results (errno or -1/null and errno, as its manual
// pages say). Those that are inline functions in verbs.h (post_send, post_recv, poll_cq,
// req_notify_cq) are members too; the message path reads them through the table.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace bitrail::transport::verbs {

struct Table {
  ibv_device** (*get_device_list)(int* count);
  void (*free_device_list)(ibv_device** list);
  const char* (*get_device_name)(ibv_device* device);
  ibv_context* (*open_device)(ibv_device* device);
  int (*close_device)(ibv_context* context);
  int (*query_device)(ibv_context* context, ibv_device_attr* attributes);
  int (*query_port)(ibv_context* context, uint8_t port, ibv_port_attr* attributes);
  int (*query_gid)(ibv_context* context, uint8_t port, int index, ibv_gid* gid);
  // *version: 1 (also InfiniBand's) or 2, as sysfs' gid_attrs/types tells.
  int (*query_gid_version)(ibv_context* context, uint8_t port, int index, int* version);
  int (*query_pkey)(ibv_context* context, uint8_t port, int index, uint16_t* pkey);
  // The device's folder below /sys/class/infiniband resolved to its PCI device; -1 where none.
  int (*pci_path)(ibv_device* device, char* path, size_t bytes);
  ibv_pd* (*alloc_pd)(ibv_context* context);
  int (*dealloc_pd)(ibv_pd* pd);
  ibv_mr* (*reg_mr)(ibv_pd* pd, void* address, size_t bytes, int access);
  // With iova = address: how relaxed ordering is asked for. Null where the library lacks it.
  ibv_mr* (*reg_mr_iova2)(ibv_pd* pd, void* address, size_t bytes, uint64_t iova,
                          unsigned int access);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd* pd, uint64_t offset, size_t bytes, uint64_t iova, int fd,
                           int access);
  int (*dereg_mr)(ibv_mr* mr);
  ibv_comp_channel* (*create_comp_channel)(ibv_context* context);
  int (*destroy_comp_channel)(ibv_comp_channel* channel);
  ibv_cq* (*create_cq)(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                       int vector);
  int (*destroy_cq)(ibv_cq* cq);
  int (*req_notify_cq)(ibv_cq* cq, int solicited_only);
  int (*get_cq_event)(ibv_comp_channel* channel, ibv_cq** cq, void** user);
  void (*ack_cq_events)(ibv_cq* cq, unsigned int count);
  int (*poll_cq)(ibv_cq* cq, int entries, ibv_wc* completions);
  ibv_qp* (*create_qp)(ibv_pd* pd, ibv_qp_init_attr* attributes);
  int (*modify_qp)(ibv_qp* qp, ibv_qp_attr* attributes, int mask);
  int (*query_qp)(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* init);
  int (*destroy_qp)(ibv_qp* qp);
  int (*post_send)(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad);
  int (*post_recv)(ibv_qp* qp, ibv_recv_wr* work, ibv_recv_wr** bad);
  int (*get_async_event)(ibv_context* context, ibv_async_event* event);
  void (*ack_async_event)(ibv_async_event* event);
  int (*fork_init)();
};

// The table in use: the library's unless replaced. Before a context is opened, tests only.
const Table& table();
void replace_table(const Table* table);  // null: the library's again
// Counts the replacements: what was done once for a table is to be done for the next.
unsigned table_generation();

}  // namespace bitrail::transport::verbs
