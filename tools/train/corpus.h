// The text to train on: WordNet's glosses (Debian package wordnet-base) or any text file.
#pragma once

#include <string>

#include "runtime/common/status.h"

namespace bitrail::train {

// Where the package wordnet-base keeps data.noun, data.verb, data.adj and data.adv.
inline constexpr const char* kWordNetFolder = "/usr/share/wordnet";
// Fewer bytes than this cannot fill the held-out part and a few batches.
inline constexpr size_t kMinCorpusBytes = 16384;

// Reads `path`; empty: the glosses. Refuses what is missing, unreadable, empty, too short or binary
// (NUL or more than 1 % control bytes) with a text that names the file.
Status ReadCorpus(const std::string& path, std::string* text);
// The glosses under `folder`: of each line what stands behind '|', one gloss a line. Lines that
// start with a space are the licence.
Status ReadGlosses(const std::string& folder, std::string* text);

}  // namespace bitrail::train
