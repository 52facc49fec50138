/* Algorithms from shared objects (BITRAIL_ALGO_PATH).
 *
 * A module is a shared object that exports `bitrail_module_init`. It is loaded when the first
 * communicator is created, gets a table of functions, and registers algorithms with it. An
 * algorithm describes, for one rank, what is sent, received, copied and summed; it runs nothing
 * itself. When it registers, its schedules are built for several world sizes and verified for all
 * ranks at once; one that is wrong (a send without its receive, a missing order, a contribution
 * lost or counted twice) is refused with the reason. BITRAIL_ALGO=collective:name then chooses it.
 *
 * docs/algorithms.md explains buffers, ranges and messages. This interface is not stable before
 * version 1.0.
 */
#ifndef BITRAIL_MODULE_H
#define BITRAIL_MODULE_H

#include <bitrail/bitrail.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BITRAIL_MODULE_VERSION 1

typedef struct bitrail_builder bitrail_builder_t; /* one rank's schedule in the making */

/* What is asked; equal on all ranks but for `rank` and `in_place`. */
typedef struct bitrail_module_request {
  size_t struct_size;
  int rank, world_size, root;
  uint64_t count;  /* elements of the whole */
  uint64_t bytes;  /* the same in the call's data type */
  uint32_t pieces; /* cut every chunk into so many, at least 1 */
  int in_place, deterministic;
} bitrail_module_request_t;

/* Piece `piece` of `pieces` of chunk `chunk` of `chunks`, in slot `slot` of a buffer. */
typedef struct bitrail_module_range {
  uint32_t buffer, slot, chunk, chunks, piece, pieces;
} bitrail_module_range_t;

typedef int (*bitrail_module_applies_fn)(void* user, const bitrail_module_request_t* request);
typedef void (*bitrail_module_build_fn)(void* user, const bitrail_module_request_t* request,
                                        bitrail_builder_t* builder);

/* The functions a module may call, only inside bitrail_module_init and the build function. */
typedef struct bitrail_module_host {
  size_t struct_size;
  uint32_t version; /* BITRAIL_MODULE_VERSION of the library */
  /* `collective` as in BITRAIL_ALGO ("allreduce"); `name` without colon, comma or space. `user`
   * must live as long as the process. The text of a failure is in bitrail_last_error(). */
  bitrail_status_t (*register_algorithm)(const char* collective, const char* name,
                                         bitrail_module_applies_fn applies,
                                         bitrail_module_build_fn build, void* user);
  /* The caller's buffers; equal when the call is in place. */
  uint32_t (*input)(bitrail_builder_t* builder);
  uint32_t (*output)(bitrail_builder_t* builder);
  /* Scratch of the call's data type: `slots` copies of count/fraction elements. */
  uint32_t (*scratch)(bitrail_builder_t* builder, const char* name, uint32_t slots,
                      uint32_t fraction);
  /* Edges follow from the ranges: an operation waits for whoever wrote what it reads, and so on.
   * `message` is equal at both ends and unique for each ordered pair of ranks. */
  void (*send)(bitrail_builder_t* builder, int peer, uint32_t message, bitrail_module_range_t from);
  void (*recv)(bitrail_builder_t* builder, int peer, uint32_t message, bitrail_module_range_t into);
  void (*copy)(bitrail_builder_t* builder, bitrail_module_range_t from,
               bitrail_module_range_t into);
  /* into = sources[0] op sources[1] op ..., in this order. */
  void (*reduce)(bitrail_builder_t* builder, const bitrail_module_range_t* sources, size_t count,
                 bitrail_module_range_t into);
} bitrail_module_host_t;

/* Exported by the module. Anything but BITRAIL_OK fails the communicator's creation. */
typedef bitrail_status_t (*bitrail_module_init_fn)(const bitrail_module_host_t* host);
bitrail_status_t bitrail_module_init(const bitrail_module_host_t* host);

#ifdef __cplusplus
}
#endif
#endif
