// The two rings of a connection, as counters over memory; see message.h. No verbs call here.
//
// Positions count units since the connection's start and wrap at 2^32.
#pragma once

#include <cstdint>

#include "runtime/transport/verbs/message.h"

namespace bitrail::transport::verbs {

struct SendOp;

// Entries of one ring that the other end has not taken yet, at most. Bounds the receive queues.
constexpr uint32_t kMaxEntries = 128;

// What the writer remembers of an entry until its reader has taken it.
struct Note {
  uint64_t tag;
  Note* next;  // in a TagQueue
  uint32_t end;
  uint32_t id;     // a clear's receive
  bool unmatched;  // a message whose receive the sender did not know
  SendOp* op;      // of an announced message
};

// The peer's ring, as its writer sees it.
class OutRing {
 public:
  void open(uint8_t* staging, uint32_t units) {
    staging_ = staging;
    units_ = units;
  }
  // Is there room for an entry so long?
  bool room(uint32_t units) const {
    const uint32_t used = written_ + skip(units) + units - oldest();
    return count_ < kMaxEntries && used <= units_;
  }
  // Where an entry so long begins: as a position, and where to build it. Ask for room() first.
  uint32_t place(uint32_t units, uint8_t** to) const {
    const uint32_t position = written_ + skip(units);
    *to = staging_ + size_t{position & (units_ - 1)} * kUnitBytes;
    return position;
  }
  // The entry placed last is on its way.
  Note* commit(uint32_t position, uint32_t units) {
    written_ = position + units;
    Note* note = &notes_[(first_ + count_++) % kMaxEntries];
    *note = {};
    note->end = written_;
    return note;
  }
  // The reader has taken all up to here. False when that cannot be. `each` gets the notes.
  template <typename Each>
  bool acknowledge(uint32_t position, Each each) {
    if (position - acknowledged_ > written_ - acknowledged_) return false;
    acknowledged_ = position;
    while (count_ > 0 && static_cast<int32_t>(notes_[first_].end - position) <= 0) {
      Note* note = &notes_[first_];
      first_ = (first_ + 1) % kMaxEntries;
      count_--;
      each(note);
    }
    return true;
  }
  // Of a credit, which has the low bits only.
  uint32_t extend(uint32_t low) const {
    return acknowledged_ + ((low - acknowledged_) & ((1U << kCreditBits) - 1));
  }
  // The device has sent all up to here and will not read the staging memory again.
  void sent(uint32_t position) { sent_ = position; }
  uint32_t written() const { return written_; }
  uint32_t offset(uint32_t position) const { return position & (units_ - 1); }
  uint32_t count() const { return count_; }

 private:
  uint32_t skip(uint32_t units) const {
    const uint32_t offset = written_ & (units_ - 1);
    return offset + units > units_ ? units_ - offset : 0;
  }
  uint32_t oldest() const {
    return static_cast<int32_t>(acknowledged_ - sent_) < 0 ? acknowledged_ : sent_;
  }

  uint8_t* staging_ = nullptr;
  uint32_t units_ = 0;
  uint32_t written_ = 0, acknowledged_ = 0, sent_ = 0;
  Note notes_[kMaxEntries];
  uint32_t first_ = 0, count_ = 0;
};

// The own ring, as its reader sees it.
class InRing {
 public:
  void open(const uint8_t* memory, uint32_t units) {
    memory_ = memory;
    units_ = units;
  }
  // Takes the entry that an immediate announced. False when it is not the one that has to come.
  // The payload stays until a credit or an entry tells that it was taken.
  bool take(uint32_t offset, Entry* entry) {
    if (offset >= units_) return false;
    const size_t available = size_t{units_ - offset} * kUnitBytes;
    if (!parse_entry(memory_ + size_t{offset} * kUnitBytes, available, entry)) return false;
    const uint32_t at = consumed_ & (units_ - 1);
    const uint32_t skip = at + entry->units > units_ ? units_ - at : 0;
    if (entry->position != consumed_ + skip || (entry->position & (units_ - 1)) != offset) {
      return false;
    }
    consumed_ = entry->position + entry->units;
    untold_entries_++;
    return true;
  }
  uint32_t consumed() const { return consumed_; }
  // The writer should hear of it, lest it wait for room.
  bool credit_due() const {
    return consumed_ - told_ >= units_ / 4 || untold_entries_ >= kMaxEntries / 4;
  }
  void told() {
    told_ = consumed_;
    untold_entries_ = 0;
  }

 private:
  const uint8_t* memory_ = nullptr;
  uint32_t units_ = 0;
  uint32_t consumed_ = 0, told_ = 0, untold_entries_ = 0;
};

}  // namespace bitrail::transport::verbs
