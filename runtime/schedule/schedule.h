// A schedule: what one rank does in a collective, as data.
//
// A DAG of operations over symbolic buffers. Each operation names the ranges it reads and writes;
// the edges say what must be complete before it starts. Sizes are symbolic: a range is "piece k of
// K of chunk j of J" of a buffer, and bytes appear only when the schedule is bound to counts
// (Binding). One schedule therefore serves every count.
//
// Four readers know only this file: verify (all ranks at once, symbolically), draw, the simulator,
// and the engine's compiler. Operation kinds, buffers and nested schedules are open: a module adds
// its own kinds (OperationKind), the schedule does not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bitrail::schedule {

// A count that is known at launch only. Schedules may declare more (Schedule::symbols).
using Symbol = uint32_t;
constexpr Symbol kElements = 0;  // data elements of the call (padded where the algorithm says so)
constexpr Symbol kScales = 1;    // scales in one rank's slot

// How elements become bytes in a buffer. `bytes(a)` is the position of element a: a * bits / 8,
// plus what each group of elements carries in front of it (a block's scale).
struct Unit {
  uint32_t bits = 0;         // per element; 0: the call's data type
  uint32_t group_bytes = 0;  // extra bytes before each group's elements; 0: none
  bool operator==(const Unit&) const = default;
};
constexpr Unit kDataUnit{0, 0};
constexpr Unit kFloatUnit{32, 0};
constexpr Unit kBitUnit{1, 0};
constexpr Unit kBitBlockUnit{
    1, 4};  // sign bits in groups, one float32 scale each (group length: Binding::group)
constexpr Unit kByteUnit{8, 0};

// Roles let the caller bind buffers; further ones are scratch or module-owned.
enum class Role : uint8_t { input, output, scratch, worker_error, server_error, external };

// `parts` slots of `of` elements each; a slot is `of` split in `chunks` and one of these when
// `chunk_sized`.
struct Buffer {
  std::string name;
  Role role = Role::scratch;
  Unit unit;
  Symbol symbol = kElements;
  uint32_t slots = 1;  // independent copies, one after the other (a slot per peer, say)
  uint32_t fraction =
      1;  // each slot holds symbol/fraction elements (one chunk: fraction = world size)
};
using BufferId = uint32_t;

// Elements [begin, end) of one slot: chunk `chunk` of `chunks`, of that piece `piece` of `pieces`.
// In a buffer with fraction F > 1 the slot is one chunk already, so chunks = 1 there, and the piece
// bounds equal those of the chunk they mirror.
//
// Bounds for count n, with quantum q (Binding::quantum): chunk length c = roundup(ceil(n / J), q),
// chunk j = [min(j*c, n), min((j+1)*c, n)). Pieces likewise with quantum Binding::piece_quantum
// over the FULL chunk length c, cut to the chunk. Late chunks and pieces may be empty; that is
// legal and every operation accepts it.
struct Range {
  BufferId buffer = 0;
  uint32_t slot = 0;
  uint32_t chunk = 0, chunks = 1;
  uint32_t piece = 0, pieces = 1;
};

using OperationId = uint32_t;

struct OperationKind;

struct Operation {
  const OperationKind* kind = nullptr;
  int peer = -1;  // send, recv: the other rank
  uint32_t message =
      0;              // send, recv: equal at both ends, unique per ordered pair within the schedule
  uint32_t lane = 0;  // operations of one lane run in order of id when nothing else orders them
  std::vector<Range> reads;
  std::vector<Range> writes;        // a range that is read and written (accumulator) stands in both
  std::vector<OperationId> after;   // edges; every id smaller than the operation's own
  std::vector<int64_t> attributes;  // the kind's own parameters
  const struct Schedule* nested = nullptr;  // kind `call`: run that schedule here
  std::vector<BufferId> nested_buffers;     // its buffers, by its ids, in this schedule's
};

// What an operation means symbolically: the verifier runs this.
//
// A value is what one element holds: how often each rank's contribution is inside. The element
// index is kept too, so that data that lands in the wrong place is seen.
enum class Meaning : uint8_t {
  send,    // peer gets reads[*]; writes nothing
  recv,    // writes[*] get what the peer sent
  copy,    // writes[0] = reads[0]
  reduce,  // writes[0] = sum of reads[*]
  pack,    // writes[*] (not an error buffer) = reads[0] (+ reads[1], an error); errors do not carry
           // contributions
  unpack,  // writes[0] = reads[0] decoded
  none,    // moves no data values (scale, verdict): only ordering is checked
  call,    // nested schedule
  opaque   // a module's own: every write depends on every read; not checked for exactness
};

struct OperationKind {
  const char* name;
  Meaning meaning;
};

// The kinds of the runtime's own algorithms. A module defines further OperationKind constants; the
// engine finds how to execute a kind in its executor table, by address (engine/executors.h).
extern const OperationKind kSend, kRecv, kCopy, kReduce, kCall;
extern const OperationKind kScale;    // reads input, worker error; writes a scales slot
extern const OperationKind kVerdict;  // reads all scales slots: go on, or refuse on all ranks
extern const OperationKind
    kPack;  // reads input range, worker error, scales; writes bits and worker error
extern const OperationKind kUnpackAverage;  // reads bits of all ranks (one range each, rank order),
                                            // scales; accumulates into server error
extern const OperationKind kServerScale;    // reads server error; writes server scales
extern const OperationKind kServerPack;     // reads server error, scales; writes bits, server error
extern const OperationKind kUnpack;         // reads bits, scales; writes output
extern const OperationKind kServerAdd;      // all-gather alone: server error += input chunk
extern const OperationKind
    kTakeAverage;  // reduce-scatter alone: output = average of bits; no server error

struct Schedule {
  std::string name;  // algorithm and options: "onebit_direct allreduce w4 k16"
  int rank = 0;
  int world_size = 1;
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;
  std::vector<std::shared_ptr<const Schedule>> owned;  // nested schedules kept alive
};

// Counts for the symbols, and how to cut them.
struct Binding {
  std::vector<uint64_t> counts;  // by Symbol
  uint64_t quantum = 1;          // chunk boundaries are multiples of this
  uint64_t piece_quantum = 1;    // piece boundaries are multiples of this
  uint64_t group = 0;            // elements per group in units with group_bytes
  uint32_t data_bits = 32;       // the call's data type
};

// Element bounds of a range, and byte bounds inside its buffer (slots included).
struct Bounds {
  uint64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};
Bounds element_bounds(const Schedule& schedule, const Range& range, const Binding& binding);
Bounds byte_bounds(const Schedule& schedule, const Range& range, const Binding& binding);
uint64_t buffer_bytes(const Buffer& buffer, const Binding& binding);

// Hash over everything that another rank could notice (kinds, ranges, messages, edges).
uint64_t hash(const Schedule& schedule);

}  // namespace bitrail::schedule
