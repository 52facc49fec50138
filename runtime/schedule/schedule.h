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
constexpr Unit kDoubleUnit{64, 0};
constexpr Unit kBitUnit{1, 0};
constexpr Unit kBitBlockUnit{
    1, 4};  // sign bits in groups, one float32 scale each (group length: Binding::group)
constexpr Unit kByteUnit{8, 0};

// Roles let the caller bind buffers; further ones are scratch or module-owned.
enum class Role : uint8_t { input, output, scratch, worker_error, server_error, external };

// `slots` independent places, one after the other. A place is as long as its symbol says (the
// default), or one full chunk (`fraction` chunks make the symbol), or one full piece of a chunk
// (`pieces`).
//
// In place: the caller's input and output are one Buffer, which has the role of the larger one:
// output, and input for reduce-scatter (whose output is a part of the input).
struct Buffer {
  std::string name;
  Role role = Role::scratch;
  Unit unit;
  Symbol symbol = kElements;
  uint32_t slots = 1;     // a slot per peer, say
  uint32_t fraction = 1;  // > 1: a slot has room for one chunk of that many (the world size)
  uint32_t pieces = 1;    // > 1: a slot has room for one piece of that many of the chunk only
};
using BufferId = uint32_t;

// Elements of one slot: chunk `chunk` of `chunks`, of that piece `piece` of `pieces`. Or `span`
// chunks from `chunk` on in one, which then are not cut into pieces and lie in a buffer of wholes.
//
// Bounds for count n, with quantum q (Binding::quantum): chunk length c = roundup(ceil(n / J), q),
// chunk j = [min(j*c, n), min((j+1)*c, n)). With J = 1 the chunk is [0, n) whatever q. Pieces
// likewise with quantum Binding::piece_quantum over the FULL chunk length c, cut to the chunk. Late
// chunks and pieces may be empty; that is legal and every operation accepts it.
//
// chunk/chunks and piece/pieces always say which part of the whole it is, in every buffer. Where
// that part lies is the buffer's affair: in one with fraction F > 1 positions count from the
// chunk's begin (and chunks = F), in one with pieces > 1 from the piece's begin. Only
// element_bounds and byte_bounds know that.
struct Range {
  BufferId buffer = 0;
  uint32_t slot = 0;
  uint32_t chunk = 0, chunks = 1;
  uint32_t piece = 0, pieces = 1;
  uint32_t span = 1;
  bool operator==(const Range&) const = default;
};

using OperationId = uint32_t;

struct OperationKind;

struct Operation {
  const OperationKind* kind = nullptr;
  int peer = -1;  // send, recv: the other rank
  // send, recv: equal at both ends, unique per ordered pair within the schedule. call: added to the
  // nested schedule's messages.
  uint32_t message = 0;
  uint32_t lane = 0;  // operations of one lane run in order of id when nothing else orders them
  std::vector<Range> reads;         // send: one range, or none (a message of 0 bytes)
  std::vector<Range> writes;        // a range that is read and written (accumulator) stands in both
  std::vector<OperationId> after;   // edges; every id smaller than the operation's own; ascending
  std::vector<int64_t> attributes;  // the kind's own parameters
  // Kind `call`: run that schedule here. See flatten.h for what its buffers, ranks and messages
  // become.
  const struct Schedule* nested = nullptr;
  std::vector<BufferId> nested_buffers;  // its buffers, by its ids, in this schedule's
};

// What an operation means symbolically: the verifier runs this.
//
// A value is what one element holds: how often each rank's contribution is inside. The element
// index is kept too, so that data that lands in the wrong place is seen.
enum class Meaning : uint8_t {
  send,    // peer gets reads[*]; writes nothing
  recv,    // writes[*] get what the peer sent
  copy,    // writes[0] = reads[0]
  reduce,  // writes[0] = sum of reads[*] of the same symbol
  pack,    // writes[0] = reads[0] (+ an error); written error buffers carry no contributions
           // afterwards
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
// The 1-bit kinds. `?` stands only with segment scales; with block scales the scales are inside the
// bits' records. Scales slots hold Symbol kScales floats, the last one is the verdict flag; `sums`
// holds as many doubles, which scan, sign and server sign add to, one at a time; the first
// (attribute 1) sets them to zero and does not read them.
//
// reads input range, error, sums?;                 writes sums
extern const OperationKind kScan;
// reads sums;                                      writes scales slot (own)
extern const OperationKind kScale;
// reads every scales slot;                         writes verdict: go on, or refuse on all ranks
extern const OperationKind kVerdict;
// reads input range, error, verdict, scales slot?; writes bits, error
extern const OperationKind kPack;
// Scan and packing in another order, for bits that leave before the verdict: the bits first,
// nothing else is changed; the error they leave behind after it. reads input range, error, sums?;
// writes bits, sums
extern const OperationKind kSign;
// reads input range, error, bits, verdict, scales slot?; writes error
extern const OperationKind kResidual;
// reads bits (one range a rank, rank order), server error, scales slots?; writes server error
extern const OperationKind kUnpackAverage;
// reads sums;                                      writes server scales slot (own)
extern const OperationKind kServerScale;
// reads server error;                              writes bits, server error (block scales)
extern const OperationKind kServerPack;
// The same in two halves around the scale (segment scales):
// reads server error, sums?;                       writes bits, sums
extern const OperationKind kServerSign;
// reads server error, server scales slot;          writes server error
extern const OperationKind kServerResidual;
// reads bits, scales slot?;                        writes output
extern const OperationKind kUnpack;
// reads bits (one range a rank, rank order), scales slots?; writes output (reduce-scatter alone)
extern const OperationKind kTakeAverage;
// Hierarchical: what happens inside a node before its sums are coded. Values are float32, chunk by
// chunk, padding zero.
// reads input range;                               writes values
extern const OperationKind kLoad;
// reads values or the input range (one a rank of the node, in their order); writes values: the sum,
// times nodes over ranks
extern const OperationKind kNodeSum;
// reads scales slots of one rail;                  writes a scales slot: no scales, their verdict
extern const OperationKind kJoin;

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

struct Bounds {
  uint64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  uint64_t size() const { return empty() ? 0 : end - begin; }
};

// Elements of the whole symbol that a range stands for: what a kernel needs to find the segment.
Bounds global_bounds(const Schedule& schedule, const Range& range, const Binding& binding);
// Element bounds of a range inside its slot, and byte bounds inside its buffer (slots included).
// Ranges of units with less than a byte an element, or with groups, must begin on a byte and a
// group: choose the quanta accordingly.
Bounds element_bounds(const Schedule& schedule, const Range& range, const Binding& binding);
Bounds byte_bounds(const Schedule& schedule, const Range& range, const Binding& binding);
// Elements that one slot has room for, the distance of slots (cache lines in scratch), and all.
uint64_t slot_elements(const Buffer& buffer, const Binding& binding);
uint64_t slot_bytes(const Buffer& buffer, const Binding& binding);
uint64_t buffer_bytes(const Buffer& buffer, const Binding& binding);

// Hash over everything that another rank could notice (kinds, ranges, messages, edges).
uint64_t hash(const Schedule& schedule);

}  // namespace bitrail::schedule
