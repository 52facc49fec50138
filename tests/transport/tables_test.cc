#include "runtime/transport/tables.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace bitrail::transport {
namespace {

struct Item {
  uint64_t tag = 0;
  Item* next = nullptr;
  int value = 0;
};

TEST(IdTable, StaleIdsFindNothing) {
  IdTable<Item> table;
  Item first, second;
  const uint32_t id = table.insert(&first);
  EXPECT_NE(id, IdTable<Item>::kNone);
  EXPECT_EQ(table.find(id), &first);
  EXPECT_EQ(table.find(id + 1), nullptr);
  EXPECT_EQ(table.find(0), nullptr);
  table.erase(id);
  EXPECT_EQ(table.find(id), nullptr);
  const uint32_t again = table.insert(&second);  // the same place, another generation
  EXPECT_NE(again, id);
  EXPECT_EQ(table.find(id), nullptr);
  EXPECT_EQ(table.find(again), &second);
  table.erase(id);  // does nothing
  EXPECT_EQ(table.find(again), &second);
}

TEST(IdTable, IdsDifferUntilGenerationsWrap) {
  IdTable<Item> table;
  Item item;
  std::set<uint32_t> seen;
  for (int i = 0; i < 4095; i++) {
    const uint32_t id = table.insert(&item);
    EXPECT_NE(id, IdTable<Item>::kNone);
    EXPECT_TRUE(seen.insert(id).second);
    table.erase(id);
  }
}

TEST(TagQueue, FirstInFirstOutForEachTag) {
  TagQueue<Item> queue;
  std::vector<Item> items(3000);
  for (size_t i = 0; i < items.size(); i++) {
    items[i].tag = (i % 7) << 60 | (i % 3);
    items[i].value = static_cast<int>(i);
    queue.push(&items[i]);
  }
  EXPECT_EQ(queue.size(), items.size());
  EXPECT_EQ(queue.pop(99), nullptr);
  for (size_t tag = 0; tag < 21; tag++) {
    int last = -1;
    while (Item* item = queue.pop((tag % 7) << 60 | (tag % 3))) {
      EXPECT_GT(item->value, last);
      last = item->value;
    }
  }
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.pop_any(), nullptr);
}

TEST(TagQueue, TakesOutOfTheMiddleAndTheEnd) {
  TagQueue<Item> queue;
  std::vector<Item> items(200);
  for (size_t i = 0; i < items.size(); i++) items[i].tag = i;  // several tags a bucket
  for (Item& item : items) queue.push(&item);
  for (size_t i = items.size(); i-- > 0;) EXPECT_EQ(queue.pop(i), &items[i]);
  queue.push(items.data());
  size_t count = 0;
  queue.each([&count](const Item&) { count++; });
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(queue.pop_any(), items.data());
}

TEST(Pool, ReusesAndNeverMoves) {
  Pool<Item> pool;
  std::set<Item*> taken;
  for (int i = 0; i < 1000; i++) EXPECT_TRUE(taken.insert(pool.take()).second);
  for (Item* item : taken) pool.give(item);
  for (int i = 0; i < 1000; i++) EXPECT_EQ(taken.count(pool.take()), 1U);
}

}  // namespace
}  // namespace bitrail::transport
