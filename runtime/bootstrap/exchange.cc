#include "runtime/bootstrap/exchange.h"

#include "runtime/bootstrap/bytes.h"
#include "runtime/bootstrap/secret.h"

namespace bitrail::bootstrap {
namespace {

constexpr uint32_t kMagic = 0x31585242;  // "BRX1"

// The same verdict at every rank, as it depends on the gathered entries only.
Status check(const std::vector<Entry>& entries, int size) {
  for (int rank = 0; rank < size; rank++) {
    const Entry& entry = entries[static_cast<size_t>(rank)];
    if (entry.size != size) {
      return failure(BITRAIL_ERR_WORLD_SIZE, "rank {} was started with world size {}, not {}", rank,
                     entry.size, size);
    }
    if (entry.rank != rank) {
      return failure(BITRAIL_ERR_RANK_TAKEN,
                     "the process at place {} of the launcher's all-gather says it is rank {}",
                     rank, entry.rank);
    }
  }
  const Entry& root = entries.front();
  if (root.code != BITRAIL_OK) return Status(root.code, "rank 0: " + root.text);
  bool any = false, all = true;
  int without = -1;
  for (const Entry& entry : entries) {
    any |= entry.has_secret;
    all &= entry.has_secret;
    if (!entry.has_secret && without < 0) without = entry.rank;
  }
  if (any && !all) {
    return failure(BITRAIL_ERR_SECRET_MISSING,
                   "rank {} has no job secret while others have: set BITRAIL_SECRET at every rank "
                   "or at none",
                   without);
  }
  if (!any && root.secret.empty()) {
    return failure(BITRAIL_ERR_SECRET_MISSING, "rank 0 sent no job secret");
  }
  return {};
}

}  // namespace

std::vector<uint8_t> encode(const Entry& entry) {
  std::vector<uint8_t> out;
  put(&out, kMagic);
  put(&out, entry.rank);
  put(&out, entry.size);
  put(&out, static_cast<uint8_t>(entry.has_secret));
  put(&out, static_cast<uint32_t>(entry.code));
  put_text(&out, std::string_view(entry.addresses).substr(0, 512));
  put_text(&out, std::string_view(entry.secret).substr(0, 64));
  put_text(&out, std::string_view(entry.text).substr(0, 256));
  out.resize(kEntryBytes);
  return out;
}

bool decode(std::span<const uint8_t> bytes, Entry* entry) {
  Reader reader(bytes);
  if (bytes.size() != kEntryBytes || reader.get<uint32_t>() != kMagic) return false;
  entry->rank = reader.get<int32_t>();
  entry->size = reader.get<int32_t>();
  entry->has_secret = reader.get<uint8_t>() != 0;
  const auto code = reader.get<uint32_t>();
  entry->addresses = reader.text();
  entry->secret = reader.text();
  entry->text = reader.text();
  if (code > BITRAIL_ERR_INTERNAL || !reader.good()) return false;
  entry->code = static_cast<bitrail_status_t>(code);
  return true;
}

Status exchange_rendezvous(const Status& listening, const std::string& addresses, World* world) {
  Entry mine;
  mine.rank = world->rank;
  mine.size = world->size;
  mine.has_secret = !world->secret.empty();
  if (world->rank == 0) {
    Status ready = listening;
    if (ready.ok() && !mine.has_secret) ready = random_secret(&mine.secret);
    mine.addresses = addresses;
    mine.code = ready.code();
    mine.text = ready.text();
  }
  const auto count = static_cast<size_t>(world->size);
  std::vector<uint8_t> all(count * kEntryBytes);
  BITRAIL_TRY(world->exchange(encode(mine).data(), kEntryBytes, all.data()));
  std::vector<Entry> entries(count);
  for (size_t rank = 0; rank < count; rank++) {
    if (!decode(std::span(all).subspan(rank * kEntryBytes, kEntryBytes), &entries[rank])) {
      return failure(BITRAIL_ERR_PROTOCOL,
                     "the launcher's all-gather returned no sensible entry for rank {}", rank);
    }
  }
  BITRAIL_TRY(check(entries, world->size));
  if (world->secret.empty()) world->secret = entries.front().secret;
  world->rendezvous = entries.front().addresses;
  return {};
}

}  // namespace bitrail::bootstrap
