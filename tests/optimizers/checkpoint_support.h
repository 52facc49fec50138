// For the checkpoint tests: a directory that goes away, and small state that tells its step.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "optimizers/checkpoint/load.h"
#include "optimizers/checkpoint/save.h"

namespace bitrail::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "bitrail-checkpoint-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// State that is a function of step and rank: one tensor of each kind.
struct SmallState {
  std::vector<float> momentum;   // replicated
  std::vector<uint16_t> params;  // replicated float16, two extents
  std::vector<float> error;      // per rank
  std::vector<uint8_t> random;   // per rank, of another length on every rank
  checkpoint::Content content;

  SmallState(int64_t step, int rank, size_t elements = 37)
      : momentum(elements),
        params(6),
        error(elements + 3),
        random(static_cast<size_t>(rank) + 1, static_cast<uint8_t>(step)) {
    for (size_t i = 0; i < elements; i++) momentum[i] = static_cast<float>(step * 1000) + i;
    for (size_t i = 0; i < params.size(); i++) params[i] = static_cast<uint16_t>(step + i);
    for (float& e : error) e = static_cast<float>(step) + 0.125f * static_cast<float>(rank);
    content.optimizer = "onebit-adam";
    content.step = step;
    content.scalars = {{"loss_scale", 65536.5}, {"interval", step}, {"compat", "deepspeed"}};
    content.model = {{"weight", elements - 5}, {"bias", 5}};
    using checkpoint::Element;
    using checkpoint::Spread;
    content.tensors = {
        {"random", Element::uint8, Spread::per_rank, {random.size()}, random.data()},
        {"exp_avg", Element::float32, Spread::replicated, {elements}, momentum.data()},
        {"params", Element::float16, Spread::replicated, {2, 3}, params.data()},
        {"worker_error", Element::float32, Spread::per_rank, {error.size()}, error.data()},
        {"empty", Element::float32, Spread::replicated, {0}, nullptr}};
  }
  SmallState(const SmallState&) = delete;
  SmallState& operator=(const SmallState&) = delete;
};

// Loads what SmallState saved and compares all of it with the state of the step it claims. The
// step; -1: it could not be opened (*why says it); -2: opened, but a mixture.
inline int64_t LoadedStep(bitrail_comm_t comm, const std::string& directory, std::string* why,
                          size_t elements = 37) {
  checkpoint::Checkpoint opened;
  const Status status = checkpoint::Open(comm, directory, &opened);
  *why = status.text();
  if (!status.ok()) return -1;
  const int rank = comm == nullptr ? 0 : bitrail_comm_rank(comm);
  const SmallState expected(opened.manifest.step, rank, elements);
  int64_t interval = 0;
  bool same = checkpoint::Get(opened.manifest.scalars, "interval", &interval) &&
              interval == opened.manifest.step;
  const auto compare = [&](const Status& read, bool equal) {
    if (!read.ok()) *why = read.text();
    same = same && read.ok() && equal;
  };
  std::vector<float> momentum(elements), error(expected.error.size());
  std::vector<uint16_t> params(6);
  std::vector<uint8_t> random(expected.random.size());
  using checkpoint::Element;
  Status read = checkpoint::Read(opened, "exp_avg", Element::float32, elements, momentum.data());
  compare(read, momentum == expected.momentum);
  read = checkpoint::Read(opened, "params", Element::float16, 6, params.data());
  compare(read, params == expected.params);
  read = checkpoint::ReadOfRank(opened, "worker_error", rank, Element::float32, 0, error.size(),
                                error.data());
  compare(read, error == expected.error);
  read = checkpoint::ReadOfRank(opened, "random", rank, Element::uint8, 0, random.size(),
                                random.data());
  compare(read, random == expected.random);
  return same ? opened.manifest.step : -2;
}

}  // namespace bitrail::test
