// Small containers of the transports' message paths: ids with generations, first-in-first-out by
// tag, chains and a pool. None allocates once warm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace bitrail::transport {

// Names for objects: 20 bits of index, then a generation (12 bits: 32 in all), so that a stale id
// finds nothing.
template <typename T, uint32_t kGenerationBits = 12>
class IdTable {
 public:
  static constexpr uint32_t kNone = 0;  // generations start at 1: no valid id is 0

  uint32_t insert(T* object) {
    uint32_t index = 0;
    if (free_.empty()) {
      if (entries_.size() > kIndexMask) return kNone;
      index = static_cast<uint32_t>(entries_.size());
      entries_.push_back({nullptr, 1});
    } else {
      index = free_.back();
      free_.pop_back();
    }
    entries_[index].object = object;
    return index | entries_[index].generation << kIndexBits;
  }
  T* find(uint32_t id) const {
    const uint32_t index = id & kIndexMask;
    if (index >= entries_.size() || entries_[index].generation != id >> kIndexBits) return nullptr;
    return entries_[index].object;
  }
  void erase(uint32_t id) {
    if (find(id) == nullptr) return;
    Entry& entry = entries_[id & kIndexMask];
    entry.object = nullptr;
    entry.generation = entry.generation == (1U << kGenerationBits) - 1 ? 1 : entry.generation + 1;
    free_.push_back(id & kIndexMask);
  }

 private:
  static constexpr uint32_t kIndexBits = 20, kIndexMask = (1U << kIndexBits) - 1;
  struct Entry {
    T* object;
    uint32_t generation;
  };
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
};

// First in, first out for each 64-bit tag. T has `uint64_t tag` and `T* next`.
template <typename T>
class TagQueue {
 public:
  void push(T* item) {
    List& list = lists_[bucket(item->tag)];
    item->next = nullptr;
    (list.last != nullptr ? list.last->next : list.first) = item;
    list.last = item;
    size_++;
  }
  // The oldest with this tag, taken out; null when there is none.
  T* pop(uint64_t tag) {
    List& list = lists_[bucket(tag)];
    T* before = nullptr;
    for (T* item = list.first; item != nullptr; before = item, item = item->next) {
      if (item->tag != tag) continue;
      (before != nullptr ? before->next : list.first) = item->next;
      if (list.last == item) list.last = before;
      size_--;
      return item;
    }
    return nullptr;
  }
  // Takes out any one.
  T* pop_any() {
    for (List& list : lists_) {
      if (list.first != nullptr) return pop(list.first->tag);
    }
    return nullptr;
  }
  size_t size() const { return size_; }
  // The oldest with this tag for which `wanted` holds; stays where it is.
  template <typename Wanted>
  T* find(uint64_t tag, Wanted wanted) const {
    for (T* item = lists_[bucket(tag)].first; item != nullptr; item = item->next) {
      if (item->tag == tag && wanted(*item)) return item;
    }
    return nullptr;
  }
  template <typename Visit>
  void each(Visit visit) const {
    for (const List& list : lists_) {
      for (const T* item = list.first; item != nullptr; item = item->next) visit(*item);
    }
  }

 private:
  static constexpr int kBucketBits = 6;
  struct List {
    T* first = nullptr;
    T* last = nullptr;
  };
  static size_t bucket(uint64_t tag) { return tag * 0x9e3779b97f4a7c15ULL >> (64 - kBucketBits); }
  List lists_[1 << kBucketBits];
  size_t size_ = 0;
};

// Doubly linked through T::previous and T::next.
template <typename T>
struct Chain {
  T* first = nullptr;
  size_t size = 0;

  void push(T* item) {
    item->previous = nullptr;
    item->next = first;
    if (first != nullptr) first->previous = item;
    first = item;
    size++;
  }
  void remove(T* item) {
    (item->previous != nullptr ? item->previous->next : first) = item->next;
    if (item->next != nullptr) item->next->previous = item->previous;
    size--;
  }
};

// Objects that never move, reused. T has `T* next`. Not for objects with a destructor that matters.
template <typename T>
class Pool {
 public:
  T* take() {
    if (free_ == nullptr) {
      constexpr int kBlock = 64;
      for (int i = 0; i < kBlock; i++) give(&storage_.emplace_back());
    }
    T* item = free_;
    free_ = item->next;
    return item;
  }
  void give(T* item) {
    item->next = free_;
    free_ = item;
  }

 private:
  std::deque<T> storage_;
  T* free_ = nullptr;
};

}  // namespace bitrail::transport
