// One JSON object read key by key: each call names a key that may stand there, with its type and
// range. Finish refuses every other key, naming the nearest of those, before all else: what a
// mistyped key was meant for is otherwise called missing. Errors name file and path
// ("ds.json: optimizer.params.lr"); the first is kept and told by Finish.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::train {

class JsonSection {
 public:
  // `object` is borrowed. `path` is empty for the file's own object. Keys that are read and not
  // followed are said in *notes (borrowed).
  JsonSection(const nlohmann::json& object, std::string file, std::string path,
              std::vector<std::string>* notes);

  // Each leaves *value alone when the key is absent, and tells whether it was there and good.
  bool Real(std::string_view key, double* value, double low, double high);
  // Takes 4.0 for 4.
  bool Integer(std::string_view key, int64_t* value, int64_t low, int64_t high);
  bool Boolean(std::string_view key, bool* value);
  // One of `words`, in any case; *value is the index.
  bool Word(std::string_view key, std::initializer_list<std::string_view> words, size_t* value);
  // The key's value, null if absent. Marks the key as known.
  const nlohmann::json* Find(std::string_view key);
  // The key's value if it is an object, null if absent or wrong.
  const nlohmann::json* Object(std::string_view key);

  // Any value will do; nobody follows it.
  void Ignore(std::string_view key, std::string_view reason);
  // The key may not stand there.
  void Refuse(std::string_view key, std::string_view reason);
  void Fail(std::string_view key, std::string_view problem);
  // Keeps what a section inside found.
  void Take(Status status);
  void Note(std::string text);

  // Full name of a key, for messages.
  std::string Path(std::string_view key) const;
  const std::string& file() const { return file_; }
  std::vector<std::string>* notes() const { return notes_; }
  Status Finish();

 private:
  const nlohmann::json* Member(std::string_view key, bool right_type, std::string_view wanted);

  const nlohmann::json& object_;
  std::string file_, path_;
  std::vector<std::string>* notes_;
  std::vector<std::string> known_;
  Status first_;
};

// Parses a whole file's text. Refuses what is not one object, and keys that stand twice in an
// object (the second would silently win).
Status ParseJsonObject(std::string_view text, const std::string& file, nlohmann::json* object);

}  // namespace bitrail::train
