/* BitRail's public C API.
 *
 * Collective communication for distributed training, exact or with 1 bit a value and error
 * feedback.
 *
 * Stability. Everything declared here is stable within a major version: functions and enum values
 * are added, never changed or removed. Structures that a caller fills carry `struct_size` first
 * (= sizeof the structure) and may grow at the end in a minor version.
 *
 * Threads. Different communicators may be used from different threads at once. One communicator is
 * used by one thread at a time; the caller orders the calls, and every rank issues them in the same
 * order. bitrail_comm_abort and the counters may be called from any thread at any time.
 *
 * Memory. Buffers belong to the caller and must stay valid until the call (or its request) is
 * complete. A call that returned an error no longer reads or writes them.
 *
 * Errors. Every function returns a status. bitrail_last_error() gives the text of the last failure
 * on the calling thread: it names rank, peer, address and the variable to change. No function exits
 * the process.
 *
 * Counts are elements unless a name says bytes. Times are named with their unit.
 */
#ifndef BITRAIL_BITRAIL_H
#define BITRAIL_BITRAIL_H

#include <stddef.h>
#include <stdint.h>

#define BITRAIL_VERSION_MAJOR 0
#define BITRAIL_VERSION_MINOR 1
#define BITRAIL_VERSION_PATCH 0

#if defined(BITRAIL_BUILDING)
#define BITRAIL_API __attribute__((visibility("default")))
#else
#define BITRAIL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status
 * -------------------------------------------------------------------------------------- */

typedef enum bitrail_status {
  BITRAIL_OK = 0,
  BITRAIL_IN_PROGRESS = 1,          /* an asynchronous call is not complete yet; not a failure */
  BITRAIL_ERR_INVALID_ARGUMENT = 2, /* a NULL, a negative count, an unknown type, ... */
  BITRAIL_ERR_UNSUPPORTED = 3,      /* valid, but this build or this collective does not do it */
  BITRAIL_ERR_NO_MEMORY = 4,
  BITRAIL_ERR_SYSTEM = 5,    /* the operating system or a library refused; the text quotes it */
  BITRAIL_ERR_TIMEOUT = 6,   /* BITRAIL_TIMEOUT_MS passed; the text names who was waited for */
  BITRAIL_ERR_PEER_LOST = 7, /* a rank went away; the text names the lost rank */
  BITRAIL_ERR_MISMATCH = 8,  /* ranks called with different collective, count, type or algorithm */
  BITRAIL_ERR_NOT_FINITE =
      9, /* NaN or Inf in some rank's data: refused on all ranks, no state changed */
  BITRAIL_ERR_BROKEN = 10,         /* the object was broken by an earlier failure; create it anew */
  BITRAIL_ERR_ABORTED = 11,        /* some rank called bitrail_comm_abort */
  BITRAIL_ERR_CONFIG = 12,         /* an unusable BITRAIL_* value or launcher variable */
  BITRAIL_ERR_SECRET_MISSING = 13, /* no job secret here or at the peer */
  BITRAIL_ERR_SECRET_WRONG = 14,   /* the peer's proof of the job secret does not verify */
  BITRAIL_ERR_JOB_ID = 15,         /* the peer belongs to another job */
  BITRAIL_ERR_RANK_TAKEN = 16,     /* two processes claim the same rank */
  BITRAIL_ERR_WORLD_SIZE = 17,     /* ranks disagree about the world size */
  BITRAIL_ERR_PROTOCOL = 18,       /* a peer's bytes make no sense: other version or not BitRail */
  BITRAIL_ERR_INTERNAL = 19        /* a defect of BitRail itself; please report it */
} bitrail_status_t;

/* A short fixed text for a status ("peer lost"). Never NULL. */
BITRAIL_API const char* bitrail_status_string(bitrail_status_t status);
/* The text of the last failure on this thread, "" if there was none. Valid until this thread's next
 * call. */
BITRAIL_API const char* bitrail_last_error(void);
/* The library's version as text, "0.1.0". */
BITRAIL_API const char* bitrail_version(void);

/* ---- types
 * --------------------------------------------------------------------------------------- */

typedef enum bitrail_type {
  BITRAIL_FLOAT32 = 0,
  BITRAIL_FLOAT16 = 1,
  BITRAIL_BFLOAT16 = 2,
  BITRAIL_FLOAT64 = 3,
  BITRAIL_INT32 = 4,
  BITRAIL_INT64 = 5,
  BITRAIL_UINT8 = 6
} bitrail_type_t;
/* Bytes of one element, 0 for an unknown type. */
BITRAIL_API size_t bitrail_type_size(bitrail_type_t type);

typedef enum bitrail_op {
  BITRAIL_SUM = 0,
  BITRAIL_MIN = 1,
  BITRAIL_MAX = 2,
  BITRAIL_AVG = 3 /* sum / world size; floating-point types only */
} bitrail_op_t;

typedef struct bitrail_comm* bitrail_comm_t;
typedef struct bitrail_request* bitrail_request_t;
typedef struct bitrail_error_state* bitrail_error_state_t;
typedef struct bitrail_optimizer* bitrail_optimizer_t;

/* ---- communicators
 * ------------------------------------------------------------------------------- */

/* Gathers `bytes` bytes of every rank into `all` (world size x bytes, by rank). Returns 0 on
 * success. Supplied by programs that already have a way to talk (MPI_Allgather, say). */
typedef int (*bitrail_allgather_fn)(void* user, const void* mine, size_t bytes, void* all);

typedef struct bitrail_comm_options {
  size_t struct_size;             /* sizeof(bitrail_comm_options_t) */
  int rank;                       /* -1: from the launcher */
  int world_size;                 /* -1: from the launcher */
  bitrail_allgather_fn allgather; /* NULL: rendezvous by the launcher's address */
  void* allgather_user;
  const char* rendezvous; /* "host:port" of rank 0; NULL: BITRAIL_RENDEZVOUS or the launcher's */
  const char* secret;     /* job secret; NULL: BITRAIL_SECRET or the launcher's */
  const char* job_id;     /* NULL: BITRAIL_JOB_ID or the launcher's */
  int64_t timeout_ms;     /* <= 0: BITRAIL_TIMEOUT_MS */
} bitrail_comm_options_t;

/* Joins the job; collective over all ranks. `options` may be NULL (everything from the launcher and
 * the environment). World size 1 needs no launcher. The caller destroys *comm. */
BITRAIL_API bitrail_status_t bitrail_comm_create(bitrail_comm_t* comm,
                                                 const bitrail_comm_options_t* options);
/* Leaves the job and frees everything of this communicator. NULL is allowed. Not collective. */
BITRAIL_API bitrail_status_t bitrail_comm_destroy(bitrail_comm_t comm);
/* Fails all current and later calls on every rank with BITRAIL_ERR_ABORTED; `reason` may be NULL.
 */
BITRAIL_API bitrail_status_t bitrail_comm_abort(bitrail_comm_t comm, const char* reason);
BITRAIL_API int bitrail_comm_rank(bitrail_comm_t comm);
BITRAIL_API int bitrail_comm_world_size(bitrail_comm_t comm);
/* "ucx", "verbs", with "+emulated" when BITRAIL_LINK_* shapes the link. */
BITRAIL_API const char* bitrail_comm_transport(bitrail_comm_t comm);
/* The launcher that told rank and size: "callback", "torchrun", "pmix", "hydra", "bitrail",
 * "single". */
BITRAIL_API const char* bitrail_comm_launcher(bitrail_comm_t comm);

typedef struct bitrail_counters {
  size_t struct_size;
  uint64_t calls;           /* completed collectives */
  uint64_t raw_bytes;       /* bytes of the callers' data put in */
  uint64_t wire_bytes_sent; /* payload bytes sent to other ranks, BitRail's own scales included */
  uint64_t wire_bytes_received;
  uint64_t messages_sent;
  uint64_t refused;  /* calls refused because of NaN or Inf */
  uint64_t failures; /* calls that ended in another error */
  uint64_t time_ns;  /* time spent inside collectives */
} bitrail_counters_t;
/* Fills *counters since creation. Set counters->struct_size before. */
BITRAIL_API bitrail_status_t bitrail_comm_counters(bitrail_comm_t comm,
                                                   bitrail_counters_t* counters);

/* ---- collectives
 * --------------------------------------------------------------------------------- */
/* Each is called by all ranks with the same count, type, op and root; disagreement is detected and
 * reported to all. `request` NULL: returns when complete, the work is done on the calling thread.
 * Otherwise *request is set, a progress thread does the work, and bitrail_test / bitrail_wait tell.
 * send == recv means in place (all-gather and reduce-scatter: send or recv is the rank's own part
 * of the other). */

BITRAIL_API bitrail_status_t bitrail_allreduce(bitrail_comm_t comm, const void* send, void* recv,
                                               size_t count, bitrail_type_t type, bitrail_op_t op,
                                               bitrail_request_t* request);
/* send: world size x recv_count; recv: recv_count, the rank's own part. */
BITRAIL_API bitrail_status_t bitrail_reduce_scatter(bitrail_comm_t comm, const void* send,
                                                    void* recv, size_t recv_count,
                                                    bitrail_type_t type, bitrail_op_t op,
                                                    bitrail_request_t* request);
/* send: send_count; recv: world size x send_count, by rank. */
BITRAIL_API bitrail_status_t bitrail_allgather(bitrail_comm_t comm, const void* send, void* recv,
                                               size_t send_count, bitrail_type_t type,
                                               bitrail_request_t* request);
/* Like allreduce, but summed in rank order whatever the size: bit-identical from run to run and on
 * all ranks. */
BITRAIL_API bitrail_status_t bitrail_allreduce_deterministic(bitrail_comm_t comm, const void* send,
                                                             void* recv, size_t count,
                                                             bitrail_type_t type, bitrail_op_t op,
                                                             bitrail_request_t* request);
BITRAIL_API bitrail_status_t bitrail_broadcast(bitrail_comm_t comm, const void* send, void* recv,
                                               size_t count, bitrail_type_t type, int root,
                                               bitrail_request_t* request);
/* send and recv: world size x count; part j of send goes to rank j, part i of recv comes from rank
 * i. Not in place. */
BITRAIL_API bitrail_status_t bitrail_alltoall(bitrail_comm_t comm, const void* send, void* recv,
                                              size_t count, bitrail_type_t type,
                                              bitrail_request_t* request);
BITRAIL_API bitrail_status_t bitrail_barrier(bitrail_comm_t comm, bitrail_request_t* request);
/* Point to point: matched by (peer, tag) in order of posting; does not take part in the order of
 * collectives. A receive may be larger than what arrives (*received, if not NULL, tells bytes at
 * completion); a message larger than the receive is BITRAIL_ERR_MISMATCH at the receiver. */
BITRAIL_API bitrail_status_t bitrail_send(bitrail_comm_t comm, const void* data, size_t bytes,
                                          int peer, uint64_t tag, bitrail_request_t* request);
BITRAIL_API bitrail_status_t bitrail_recv(bitrail_comm_t comm, void* data, size_t bytes, int peer,
                                          uint64_t tag, size_t* received,
                                          bitrail_request_t* request);

/* BITRAIL_OK: complete, the request is freed and *request set NULL. BITRAIL_IN_PROGRESS: not yet.
 * Anything else: the failure; the request is freed too. */
BITRAIL_API bitrail_status_t bitrail_test(bitrail_request_t* request);
/* Waits until complete, at most the communicator's timeout after the last progress. Frees the
 * request. */
BITRAIL_API bitrail_status_t bitrail_wait(bitrail_request_t* request);

/* ---- 1 bit with error feedback
 * ------------------------------------------------------------------- */

typedef enum bitrail_scale {
  BITRAIL_SCALE_SEGMENT =
      0, /* one scale a segment and rank, one a segment and server chunk (DeepSpeed's) */
  BITRAIL_SCALE_BLOCK = 1 /* one scale per `block` values; pipelines better */
} bitrail_scale_t;

typedef enum bitrail_norm {
  BITRAIL_NORM_L2 = 0, /* ||b||_2 / sqrt(padded length): DeepSpeed's */
  BITRAIL_NORM_L1 = 1  /* mean of |b|: smallest error for a sign code */
} bitrail_norm_t;

typedef enum bitrail_padding {
  /* Each segment of n elements is padded to P, a multiple of W * lcm(W, 8), as separate DeepSpeed
   * calls would pad it: W = 2: 16, 3: 72, 4: 32, 8: 64, 16: 256, 64: 4,096, 256: 65,536. Scales are
   * ||b||_2 / sqrt(P), padding and the error it carries included. */
  BITRAIL_PADDING_DEEPSPEED = 0,
  /* W chunks of the next multiple of 8 elements: P = W * 8 * ceil(n / (8 W)), at most 8 W - 1 more
   * than n whatever the world size. Padding has no error and stays out of every scale: the worker's
   * is ||b||_2 / sqrt(n), a server's is over those elements of its chunk that are data. The numbers
   * are DeepSpeed's where n is a multiple of W * lcm(W, 8). */
  BITRAIL_PADDING_TIGHT = 1
} bitrail_padding_t;

/* What one compressed call carries: `segments` tensors laid one after the other, each padded for
 * itself and with its own scales. A structure that ends before `padding` means
 * BITRAIL_PADDING_DEEPSPEED. */
typedef struct bitrail_onebit_layout {
  size_t struct_size;
  size_t segments;
  const size_t* counts; /* (segments) elements of each; 0 is allowed */
  bitrail_scale_t scale;
  bitrail_norm_t norm;
  size_t block; /* values per scale with BITRAIL_SCALE_BLOCK: a power of two, 1,024..65,536; 0:
                   4,096 */
  bitrail_padding_t padding; /* with BITRAIL_SCALE_BLOCK: lengths only, a block's scale counts its
                                padding */
} bitrail_onebit_layout_t;

/* Creates zero error state for calls of this layout on this communicator. Local, not collective.
 * Memory: worker errors 4 bytes a padded element, server errors 4/W. The caller destroys it before
 * the communicator. */
BITRAIL_API bitrail_status_t bitrail_error_state_create(bitrail_error_state_t* state,
                                                        bitrail_comm_t comm,
                                                        const bitrail_onebit_layout_t* layout);
BITRAIL_API bitrail_status_t bitrail_error_state_destroy(bitrail_error_state_t state);
/* Sets all errors to zero and mends a broken state. */
BITRAIL_API bitrail_status_t bitrail_error_state_reset(bitrail_error_state_t state);
/* Bytes that save writes. */
BITRAIL_API size_t bitrail_error_state_bytes(bitrail_error_state_t state);
/* Copies this rank's errors out or in. `bytes` must equal bitrail_error_state_bytes; load checks
 * magic, rank, world size and layout, and refuses with a text what does not fit. */
BITRAIL_API bitrail_status_t bitrail_error_state_save(bitrail_error_state_t state, void* data,
                                                      size_t bytes);
BITRAIL_API bitrail_status_t bitrail_error_state_load(bitrail_error_state_t state, const void* data,
                                                      size_t bytes);
/* Euclidean norms of this rank's worker and server errors (either pointer may be NULL). */
BITRAIL_API bitrail_status_t bitrail_error_state_norms(bitrail_error_state_t state, double* worker,
                                                       double* server);

/* Computes the values to send instead of reading them from a buffer: fills out[0..count) with
 * elements [begin, begin + count) of segment `segment`. Called two or three times for
 * each range (scale, signs, error), from the thread that runs the call; must be a pure function of
 * state that the consumer alone changes. */
typedef void (*bitrail_produce_fn)(void* user, size_t segment, size_t begin, size_t count,
                                   float* out);
/* Takes the result: values[0..count) are elements [begin, begin + count) of segment `segment`.
 * Called once for each range, never before all ranks agreed that everything is finite. */
typedef void (*bitrail_consume_fn)(void* user, size_t segment, size_t begin, size_t count,
                                   const float* values);

typedef struct bitrail_onebit_call {
  size_t struct_size;
  const void* send;    /* all segments one after the other, not padded; NULL with a producer */
  void* recv;          /* likewise; may equal send; NULL with a consumer */
  bitrail_type_t type; /* FLOAT32, FLOAT16 or BFLOAT16 of send and recv */
  bitrail_produce_fn produce; /* NULL: read send */
  bitrail_consume_fn consume; /* NULL: write recv */
  void* user;
} bitrail_onebit_call_t;

/* The mean over ranks, compressed twice (worker, server), the residues kept in `state`.
 * NaN or Inf anywhere: BITRAIL_ERR_NOT_FINITE on every rank, nothing changed. */
BITRAIL_API bitrail_status_t bitrail_onebit_allreduce(bitrail_error_state_t state,
                                                      const bitrail_onebit_call_t* call,
                                                      bitrail_request_t* request);
/* First half alone: recv (or the consumer) gets the average of the ranks' compressed values of this
 * rank's own chunk: elements [begin, end) of each segment by bitrail_onebit_chunk, one segment
 * after the other. Worker error only. */
BITRAIL_API bitrail_status_t bitrail_onebit_reduce_scatter(bitrail_error_state_t state,
                                                           const bitrail_onebit_call_t* call,
                                                           bitrail_request_t* request);
/* Second half alone: send holds this rank's own chunk (as reduce_scatter leaves it); recv gets all.
 * Server error only. */
BITRAIL_API bitrail_status_t bitrail_onebit_allgather(bitrail_error_state_t state,
                                                      const bitrail_onebit_call_t* call,
                                                      bitrail_request_t* request);
/* The part of segment `segment` that rank `rank` serves: [*begin, *end), cut to the segment's
 * length. */
BITRAIL_API bitrail_status_t bitrail_onebit_chunk(bitrail_error_state_t state, size_t segment,
                                                  int rank, size_t* begin, size_t* end);

/* ---- optimizers
 * ---------------------------------------------------------------------------------- */

typedef enum bitrail_gradient {
  BITRAIL_GRADIENT_MEAN = 0, /* the next step wants the mean of the ranks' gradients */
  BITRAIL_GRADIENT_LOCAL = 1 /* the next step wants this rank's own gradient */
} bitrail_gradient_t;

typedef struct bitrail_param_group {
  size_t struct_size;
  double lr, beta1, beta2, eps, weight_decay;
} bitrail_param_group_t;

typedef struct bitrail_param_segment {
  size_t count;      /* elements of this tensor */
  size_t group;      /* index into groups */
  const float* mask; /* exp_avg_mask: (count) of 0 or 1, NULL for none; copied */
} bitrail_param_segment_t;

/* Flat storage: segments follow each other in `params` without padding. */
typedef struct bitrail_optimizer_options {
  size_t struct_size;
  float* params; /* borrowed; updated by step */
  size_t segments;
  const bitrail_param_segment_t* segment; /* (segments), copied */
  size_t groups;
  const bitrail_param_group_t* group; /* (groups), copied */
  int64_t freeze_step;                /* 1-bit optimizers; DeepSpeed's arithmetic, see init_call */
  int init_call; /* 1: make DeepSpeed's zero-gradient first call (collective), so freeze_step - 1
                    full-precision steps; 0: freeze_step counts plainly */
  bitrail_scale_t scale; /* of the compressed exchange */
  bitrail_norm_t norm;
  size_t block;
  int update_dead; /* 1-bit optimizers, elements whose variance is 0 at the freeze (they never had a
                      gradient, but the compressor gives them momentum). 0, the default: weight
                      decay only. 1: lr * momentum / eps, as DeepSpeed does, which throws them far
                      away */
} bitrail_optimizer_options_t;

/* Adam without bias correction, as the 1-bit optimizers' warm-up phase computes it. `comm` may be
 * NULL. */
BITRAIL_API bitrail_status_t bitrail_adam_create(bitrail_optimizer_t* optimizer,
                                                 bitrail_comm_t comm,
                                                 const bitrail_optimizer_options_t* options);
/* 1-bit Adam (arXiv 2102.02888) with DeepSpeed's numerics. Borrows comm. */
BITRAIL_API bitrail_status_t bitrail_onebit_adam_create(bitrail_optimizer_t* optimizer,
                                                        bitrail_comm_t comm,
                                                        const bitrail_optimizer_options_t* options);
BITRAIL_API bitrail_status_t bitrail_optimizer_destroy(bitrail_optimizer_t optimizer);
/* Which gradient the next step wants. Ask before each step, exchange accordingly. */
BITRAIL_API bitrail_gradient_t bitrail_optimizer_gradient(bitrail_optimizer_t optimizer);
/* One step with gradient (all segments, flat). On BITRAIL_ERR_NOT_FINITE nothing changed, on any
 * rank. */
BITRAIL_API bitrail_status_t bitrail_optimizer_step(bitrail_optimizer_t optimizer,
                                                    const float* gradient);
BITRAIL_API bitrail_status_t bitrail_optimizer_set_lr(bitrail_optimizer_t optimizer, size_t group,
                                                      double lr);
/* The optimizer's own step counter (the init call counts) and whether it is in the compression
 * phase. */
BITRAIL_API int64_t bitrail_optimizer_step_count(bitrail_optimizer_t optimizer);
BITRAIL_API int bitrail_optimizer_frozen(bitrail_optimizer_t optimizer);
/* Bytes of state this rank holds beyond the parameters. */
BITRAIL_API size_t bitrail_optimizer_state_bytes(bitrail_optimizer_t optimizer);

#ifdef __cplusplus
}
#endif
#endif
