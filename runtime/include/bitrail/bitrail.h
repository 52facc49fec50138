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
 * Memory: worker errors 4 bytes a padded element, server errors 4/W. Where the algorithm of the
 * allreduce is hierarchical (onebit_hier, onebit_leader: docs/algorithms.md), W stands for its
 * chunks, and a rank that codes holds 4 divided by the rails of worker errors, any other nothing.
 * The algorithm is chosen here and stays. The caller destroys it before the communicator. */
BITRAIL_API bitrail_status_t bitrail_error_state_create(bitrail_error_state_t* state,
                                                        bitrail_comm_t comm,
                                                        const bitrail_onebit_layout_t* layout);
BITRAIL_API bitrail_status_t bitrail_error_state_destroy(bitrail_error_state_t state);
/* Sets all errors to zero and mends a broken state. */
BITRAIL_API bitrail_status_t bitrail_error_state_reset(bitrail_error_state_t state);
/* Bytes that save writes. */
BITRAIL_API size_t bitrail_error_state_bytes(bitrail_error_state_t state);
/* Copies this rank's errors out or in. `bytes` must equal bitrail_error_state_bytes; load checks
 * magic, rank, world size, layout and form (flat or hierarchical, and its place), and refuses with
 * a text what does not fit. */
BITRAIL_API bitrail_status_t bitrail_error_state_save(bitrail_error_state_t state, void* data,
                                                      size_t bytes);
BITRAIL_API bitrail_status_t bitrail_error_state_load(bitrail_error_state_t state, const void* data,
                                                      size_t bytes);
/* Euclidean norms of this rank's worker and server errors (either pointer may be NULL). */
BITRAIL_API bitrail_status_t bitrail_error_state_norms(bitrail_error_state_t state, double* worker,
                                                       double* server);

/* Computes the values to send instead of reading them from a buffer: fills out[0..count) with
 * elements [begin, begin + count) of segment `segment`. Called one to three times for
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
 * after the other. Worker error only. These three are BITRAIL_ERR_UNSUPPORTED for a state whose
 * allreduce is hierarchical: BITRAIL_ALGO=onebit_allreduce:onebit_direct makes flat ones. */
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

/* The optimizers' structures grow at their ends; what a shorter one (an older header) lacks is
 * zero, and zero means the behaviour of before. */

typedef struct bitrail_param_group {
  size_t struct_size;
  double lr, beta1, beta2, eps, weight_decay;
  int non_freeze; /* OneBitAdam: 1: in the compression phase this group stays with the mean
                     gradient, which the optimizer takes itself by a full-precision allreduce, and
                     plain Adam */
} bitrail_param_group_t;

typedef struct bitrail_param_segment {
  size_t count;      /* elements of this tensor; 0 is allowed */
  size_t group;      /* index into groups */
  const float* mask; /* exp_avg_mask: (count) of 0 or 1, NULL for none; copied */
} bitrail_param_segment_t;

/* What shares a scale in the compressed exchange. */
typedef enum bitrail_layout {
  BITRAIL_LAYOUT_DEFAULT = 0,    /* OneBitLamb: fused; the others: per tensor */
  BITRAIL_LAYOUT_PER_TENSOR = 1, /* a tensor (DeepSpeed in fp32) */
  BITRAIL_LAYOUT_PER_GROUP = 2,  /* a group's tensors, concatenated (DeepSpeed in fp16) */
  BITRAIL_LAYOUT_FUSED = 3       /* everything, concatenated */
} bitrail_layout_t;

/* When compression begins; for ZeroOneAdam, when the variance is frozen. */
typedef enum bitrail_freeze {
  BITRAIL_FREEZE_STEP = 0,  /* after freeze_step; see init_call */
  BITRAIL_FREEZE_SHARE = 1, /* after freeze_share of total_steps, rounded, at least one step */
  /* When the variance has settled: the ratio (smaller over larger) of its L1 norm now and
   * 1/(1 - beta2) steps ago reaches freeze_threshold, after at least 3/(1 - beta2) steps (1-bit
   * Adam paper's idea; 0.96 is its threshold). beta2 is the largest of the groups'. The ranks agree
   * on the ratio, 16 times in 1/(1 - beta2) steps. */
  BITRAIL_FREEZE_AUTO = 2
} bitrail_freeze_t;

/* DeepSpeed's faults, each off unless asked for. */
enum {
  /* Elements whose variance is 0 (they never had a gradient, but the compressor gives them
   * momentum) move by lr * momentum / eps, far away. Otherwise: weight decay only. */
  BITRAIL_COMPAT_UPDATE_DEAD = 1 << 0,
  /* Without init_call the first step is taken for it: its gradient is ignored. Otherwise it is a
   * step. */
  BITRAIL_COMPAT_FIRST_STEP_LOST = 1 << 1,
  /* ZeroOneAdam, load: intervals start over, a frozen variance thaws for a step of local gradients,
   * and the next gradient's kind comes from the old interval, so that replicas part. Otherwise all
   * of it is kept. */
  BITRAIL_COMPAT_ZERO_ONE_LOAD = 1 << 2,
  /* ZeroOneAdam adds and subtracts an accumulator of the local steps, and replicas drift by
   * rounding. Otherwise it returns to the parameters of the last sync. */
  BITRAIL_COMPAT_ACCUMULATOR = 1 << 3,
  /* ZeroOneAdam, lr 0 over a whole interval: 0/0 in the momentum. Otherwise nothing moved and
   * nothing is exchanged. */
  BITRAIL_COMPAT_ZERO_LR = 1 << 4,
  /* ZeroOneAdam with one rank leaves the momentum alone in steps of the 1-bit gradient. */
  BITRAIL_COMPAT_ALONE_STANDS_STILL = 1 << 5,
  /* OneBitLamb refuses to compress when a tensor's momentum is all zero (DeepSpeed divides by it).
   * Otherwise such a tensor is scaled by 1. */
  BITRAIL_COMPAT_ZERO_MOMENTUM = 1 << 6,
  /* OneBitLamb takes elements without variance into the largest ratio, which pins it to >= 1. */
  BITRAIL_COMPAT_DEAD_RATIO = 1 << 7,
  /* OneBitLamb with freeze_step <= 1: the fresh variance starts at 0, not at the frozen one. */
  BITRAIL_COMPAT_FRESH_FROM_ZERO = 1 << 8,
  /* Gradient clipping by each rank's own norm in the compression phase. Otherwise by the mean of
   * the ranks' norms, so that all ranks clip alike. */
  BITRAIL_COMPAT_LOCAL_CLIP = 1 << 9,
  BITRAIL_COMPAT_DEEPSPEED = (1 << 10) - 1 /* all of them */
};
/* Not imitated at all: NaN or Inf on one rank poisoning every error and parameter (they are refused
 * on all ranks), gradients overwritten, and weights of OneBitLamb's coefficient average without
 * correction being hidden: lamb_coeff_freeze is 1 - coeff_beta^k of its value after k warm-up
 * steps, so leave it at least 3/(1 - coeff_beta) of them. */

typedef struct bitrail_zero_one {
  size_t struct_size;
  int64_t var_update_scaler; /* variance updates before their interval doubles */
  int64_t local_step_scaler; /* steps after the freeze before the interval of local steps doubles */
  int64_t local_step_clipper; /* its largest value */
} bitrail_zero_one_t;

typedef struct bitrail_lamb {
  size_t struct_size;
  double max_coeff, min_coeff; /* of ||x|| / ||u|| in warm-up */
  double coeff_beta;           /* of the coefficients' average that compression goes on with */
  double factor_max, factor_min, factor_threshold; /* of the correction in compression */
} bitrail_lamb_t;

typedef enum bitrail_loss_scale {
  BITRAIL_LOSS_SCALE_NONE = 0,
  BITRAIL_LOSS_SCALE_STATIC = 1,
  BITRAIL_LOSS_SCALE_DYNAMIC = 2
} bitrail_loss_scale_t;

/* Mixed precision. With a loss scale the gradient given to step is that of loss * scale
 * (bitrail_optimizer_loss_scale). NaN or Inf in it on any rank: all ranks skip the step, which
 * returns BITRAIL_OK, is not counted, and raises bitrail_optimizer_skipped_steps. */
typedef struct bitrail_precision {
  size_t struct_size;
  bitrail_type_t param_type; /* FLOAT32, FLOAT16 or BFLOAT16: of `params`; with the latter two the
                                optimizer holds float32 masters, 4 bytes a parameter more */
  bitrail_loss_scale_t loss_scale;
  double static_scale;
  int initial_scale_power; /* dynamic: the first scale is 2^this */
  int64_t scale_window;    /* dynamic: doubled after so many steps without overflow */
  int hysteresis;          /* dynamic: halved from so manyeth overflow on; refilled when doubled */
  double min_scale;        /* dynamic: never below */
  int64_t most_skips; /* error BITRAIL_ERR_NOT_FINITE after so many skipped steps in a row at the
                         smallest scale (static: at the scale) */
  double clip;        /* largest global norm of the gradient; 0: none. Factor
                         min(1, clip / (norm + 1e-6)) */
} bitrail_precision_t;

/* Fill in DeepSpeed's defaults, struct_size included: 16, 32678, 16; 10, 0.01, 0.9, 4, 0.5, 0.1;
 * float32, no loss scale (static 1; 2^16, 1000, 2, 1), 50 skips, no clipping. */
BITRAIL_API void bitrail_zero_one_defaults(bitrail_zero_one_t* options);
BITRAIL_API void bitrail_lamb_defaults(bitrail_lamb_t* options);
BITRAIL_API void bitrail_precision_defaults(bitrail_precision_t* options);

/* Flat storage: segments follow each other in `params` without padding. */
typedef struct bitrail_optimizer_options {
  size_t struct_size;
  void* params; /* float32, or precision->param_type; borrowed; updated by step */
  size_t segments;
  const bitrail_param_segment_t* segment; /* (segments), copied */
  size_t groups;
  const bitrail_param_group_t* group; /* (groups), copied */
  int64_t freeze_step; /* 1-bit optimizers. OneBitAdam, OneBitLamb: with init_call freeze_step - 1
                          full-precision steps (DeepSpeed's arithmetic), without it freeze_step, at
                          least one either way. ZeroOneAdam's var_freeze_step: so many steps before
                          the freeze, with or without */
  int init_call; /* 1: make DeepSpeed's zero-gradient first call (collective), which counts as a
                  * step
                  */
  bitrail_scale_t scale; /* of the compressed exchange */
  bitrail_norm_t norm;
  size_t block;
  uint32_t compat; /* BITRAIL_COMPAT_* */
  bitrail_layout_t layout;
  bitrail_padding_t padding;
  bitrail_freeze_t freeze;
  double freeze_share;                  /* BITRAIL_FREEZE_SHARE: in [0, 1] */
  int64_t total_steps;                  /* BITRAIL_FREEZE_SHARE */
  double freeze_threshold;              /* BITRAIL_FREEZE_AUTO: in (0, 1); 0: 0.96 */
  const bitrail_zero_one_t* zero_one;   /* NULL: the defaults */
  const bitrail_lamb_t* lamb;           /* NULL: the defaults */
  const bitrail_precision_t* precision; /* NULL: the defaults */
} bitrail_optimizer_options_t;

/* All of them: no bias correction, eps outside the root, decoupled weight decay. Each borrows comm,
 * which may be NULL for adam and lamb unless the precision options make the ranks agree. */

/* Adam, as the 1-bit optimizers' warm-up phase computes it. */
BITRAIL_API bitrail_status_t bitrail_adam_create(bitrail_optimizer_t* optimizer,
                                                 bitrail_comm_t comm,
                                                 const bitrail_optimizer_options_t* options);
/* LAMB, as OneBitLamb's warm-up phase computes it. */
BITRAIL_API bitrail_status_t bitrail_lamb_create(bitrail_optimizer_t* optimizer,
                                                 bitrail_comm_t comm,
                                                 const bitrail_optimizer_options_t* options);
/* 1-bit Adam (arXiv 2102.02888), 0/1 Adam (arXiv 2202.06009) and 1-bit LAMB (arXiv 2104.06069) with
 * DeepSpeed's numerics. */
BITRAIL_API bitrail_status_t bitrail_onebit_adam_create(bitrail_optimizer_t* optimizer,
                                                        bitrail_comm_t comm,
                                                        const bitrail_optimizer_options_t* options);
BITRAIL_API bitrail_status_t
bitrail_zero_one_adam_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                             const bitrail_optimizer_options_t* options);
BITRAIL_API bitrail_status_t bitrail_onebit_lamb_create(bitrail_optimizer_t* optimizer,
                                                        bitrail_comm_t comm,
                                                        const bitrail_optimizer_options_t* options);
BITRAIL_API bitrail_status_t bitrail_optimizer_destroy(bitrail_optimizer_t optimizer);
/* Which gradient the next step wants. Ask before each step, exchange accordingly. */
BITRAIL_API bitrail_gradient_t bitrail_optimizer_gradient(bitrail_optimizer_t optimizer);
/* One step with gradient (all segments, flat), which is only read. On BITRAIL_ERR_NOT_FINITE
 * nothing changed, on any rank. */
BITRAIL_API bitrail_status_t bitrail_optimizer_step(bitrail_optimizer_t optimizer,
                                                    const float* gradient);
/* The same with a gradient of FLOAT32, FLOAT16 or BFLOAT16. */
BITRAIL_API bitrail_status_t bitrail_optimizer_step_typed(bitrail_optimizer_t optimizer,
                                                          const void* gradient,
                                                          bitrail_type_t type);
BITRAIL_API bitrail_status_t bitrail_optimizer_set_lr(bitrail_optimizer_t optimizer, size_t group,
                                                      double lr);
/* The optimizer's own step counter (the init call counts, a skipped step does not) and whether it
 * is in the compression phase (ZeroOneAdam: the variance is frozen). */
BITRAIL_API int64_t bitrail_optimizer_step_count(bitrail_optimizer_t optimizer);
BITRAIL_API int bitrail_optimizer_frozen(bitrail_optimizer_t optimizer);
/* The step count after which it froze; -1: not yet, or never does. */
BITRAIL_API int64_t bitrail_optimizer_frozen_at(bitrail_optimizer_t optimizer);
/* What to multiply the next loss by (1 without a loss scale), and how many steps were skipped. */
BITRAIL_API double bitrail_optimizer_loss_scale(bitrail_optimizer_t optimizer);
BITRAIL_API int64_t bitrail_optimizer_skipped_steps(bitrail_optimizer_t optimizer);
/* Copies the factors that the last step multiplied lr with, one a segment, of Lamb and OneBitLamb.
 * `count` is the number of segments. */
BITRAIL_API bitrail_status_t bitrail_optimizer_lamb_coefficients(bitrail_optimizer_t optimizer,
                                                                 double* coefficients,
                                                                 size_t count);
/* What a load does with the errors of the 1-bit exchange. */
typedef enum bitrail_errors {
  BITRAIL_ERRORS_RESET = 0, /* they start at zero (DeepSpeed's rule); OneBitLamb, loaded in warm-up,
                               starts its average of coefficients over */
  BITRAIL_ERRORS_EXACT = 1 /* same world size, options and learning rates: goes on bit for bit as if
                              never stopped; another world size: the mean of the worker errors over
                              ranks is preserved, server errors are cut anew */
} bitrail_errors_t;

typedef struct bitrail_checkpoint_options {
  size_t struct_size;
  bitrail_errors_t errors; /* load */
} bitrail_checkpoint_options_t;

/* Collective over the optimizer's communicator (NULL: this process alone). Writes parameters and
 * state into `directory`, one shard a rank, in place of a checkpoint that is there; see
 * docs/checkpoints.md. `options` may be NULL. */
BITRAIL_API bitrail_status_t bitrail_optimizer_save(bitrail_optimizer_t optimizer,
                                                    const char* directory,
                                                    const bitrail_checkpoint_options_t* options);
/* Collective: fills the optimizer, made with the options of before (freeze_step may differ: this
 * optimizer's decides, and a step before it goes back to warm-up; so do its masks and lr), by any
 * number of ranks. Parameters are written. A checkpoint of another model or optimizer, or a damaged
 * one, is refused on all ranks, and nothing has changed. `options` may be NULL. */
BITRAIL_API bitrail_status_t bitrail_optimizer_load(bitrail_optimizer_t optimizer,
                                                    const char* directory,
                                                    const bitrail_checkpoint_options_t* options);
/* Bytes of state this rank holds beyond the parameters. */
BITRAIL_API size_t bitrail_optimizer_state_bytes(bitrail_optimizer_t optimizer);

#ifdef __cplusplus
}
#endif
#endif
