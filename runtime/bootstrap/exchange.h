// What ranks tell each other through a launcher that can gather (a caller's callback, PMIx): where
// rank 0 listens and, when nobody was given a secret, a random one. All ranks see all entries, so
// all come to the same verdict.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"

namespace bitrail::bootstrap {

inline constexpr size_t kEntryBytes = 1024;

struct Entry {
  int32_t rank = -1, size = 0;
  bool has_secret = false;
  std::string addresses;               // rank 0: "host:port,host:port"
  std::string secret;                  // rank 0: the random one, when it was given none
  bitrail_status_t code = BITRAIL_OK;  // rank 0 could not listen
  std::string text;
};

std::vector<uint8_t> encode(const Entry& entry);  // kEntryBytes
bool decode(std::span<const uint8_t> bytes, Entry* entry);

// Collective. Rank 0 passes its addresses, or `listening` failed; others ignore both. Afterwards
// world->rendezvous is rank 0's list and world->secret is set.
Status exchange_rendezvous(const Status& listening, const std::string& addresses, World* world);

}  // namespace bitrail::bootstrap
