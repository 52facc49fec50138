/* A module with a star allreduce: rank 0 sums in rank order and hands the result back. With
 * MODULE_IS_WRONG it forgets the last rank, which the library has to notice. */
#include <bitrail/module.h>

static const bitrail_module_host_t* host;

static bitrail_module_range_t whole(uint32_t buffer, uint32_t slot, uint32_t piece,
                                    uint32_t pieces) {
  const bitrail_module_range_t range = {buffer, slot, 0, 1, piece, pieces};
  return range;
}

static int applies(void* user, const bitrail_module_request_t* request) {
  (void)user;
  return request->world_size <= 16;
}

static void build(void* user, const bitrail_module_request_t* request, bitrail_builder_t* builder) {
  (void)user;
  const uint32_t input = host->input(builder), output = host->output(builder);
  const uint32_t pieces = request->pieces;
  if (request->rank != 0) {
    for (uint32_t piece = 0; piece < pieces; piece++) {
      host->send(builder, 0, piece, whole(input, 0, piece, pieces));
      host->recv(builder, 0, piece, whole(output, 0, piece, pieces));
    }
    return;
  }
  const uint32_t arrived = host->scratch(builder, "arrived", (uint32_t)request->world_size, 1);
  for (uint32_t piece = 0; piece < pieces; piece++) {
    bitrail_module_range_t sources[16];
    sources[0] = whole(input, 0, piece, pieces);
    for (int from = 1; from < request->world_size; from++) {
      sources[from] = whole(arrived, (uint32_t)from, piece, pieces);
      host->recv(builder, from, piece, sources[from]);
    }
    size_t count = (size_t)request->world_size;
#ifdef MODULE_IS_WRONG
    if (count > 2) count--;
#endif
    host->reduce(builder, sources, count, whole(output, 0, piece, pieces));
    for (int to = 1; to < request->world_size; to++)
      host->send(builder, to, piece, whole(output, 0, piece, pieces));
  }
}

__attribute__((visibility("default"))) bitrail_status_t bitrail_module_init(
    const bitrail_module_host_t* functions) {
  if (functions->version != BITRAIL_MODULE_VERSION) return BITRAIL_ERR_UNSUPPORTED;
  host = functions;
  return host->register_algorithm("allreduce", "module_star", applies, build, NULL);
}
