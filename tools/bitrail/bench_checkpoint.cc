#include "tools/bitrail/bench_checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "optimizers/checkpoint/load.h"
#include "optimizers/checkpoint/save.h"
#include "runtime/common/clock.h"

namespace bitrail::tools {
namespace {

namespace files = std::filesystem;
using checkpoint::Content;
using checkpoint::Element;
using checkpoint::Spread;

constexpr uint64_t kWrite = uint64_t{1} << 20;  // bytes a write of the loop that is compared with

struct Bench {
  bitrail_comm_t comm = nullptr;
  int rank = 0, ranks = 1;
  files::path directory;
  std::vector<float> data;  // (parameters): stands for every tensor
  Content content;
  uint64_t bytes = 0;  // of this rank's share
};

Status Barrier(const Bench& bench) {
  const bitrail_status_t code = bitrail_barrier(bench.comm, nullptr);
  if (code != BITRAIL_OK) return Status(code, bitrail_last_error());
  return {};
}

// Values without a pattern that a file system could compress.
void Fill(Bench& bench, uint64_t parameters) {
  bench.data.resize(parameters);
  uint32_t state = 1;
  for (float& value : bench.data) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  const auto ranks = static_cast<uint64_t>(bench.ranks);
  bench.content.optimizer = "onebit-adam";
  for (const char* name : {"params", "exp_avg", "exp_avg_sq"}) {
    bench.content.tensors.push_back(
        {name, Element::float32, Spread::replicated, {parameters}, bench.data.data()});
    const auto slice = checkpoint::SliceOf(parameters, bench.rank, bench.ranks);
    bench.bytes += (slice.end - slice.begin) * sizeof(float);
  }
  bench.content.tensors.push_back(
      {"worker_error", Element::float32, Spread::per_rank, {parameters}, bench.data.data()});
  bench.content.tensors.push_back({"server_error",
                                   Element::float32,
                                   Spread::per_rank,
                                   {parameters / ranks},
                                   bench.data.data()});
  bench.bytes += (parameters + parameters / ranks) * sizeof(float);
}

Status Failed(const char* what, const files::path& path) {
  return failure(BITRAIL_ERR_SYSTEM, "{} {}: {}", what, path.string(),
                 std::generic_category().message(errno));
}

// What the same bytes cost without us.
Status WriteAndSync(const Bench& bench, const files::path& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return Failed("open", path);
  const auto* data = reinterpret_cast<const char*>(bench.data.data());
  const uint64_t whole = bench.data.size() * sizeof(float);
  Status status;
  for (uint64_t at = 0; at < bench.bytes && status.ok();) {
    const uint64_t from = at % whole;  // the data over and over, as the tensors are
    const uint64_t wanted = std::min({kWrite, whole - from, bench.bytes - at});
    const ssize_t written = write(fd, data + from, wanted);
    if (written < 0) status = Failed("write", path);
    at += static_cast<uint64_t>(std::max<ssize_t>(written, 0));
  }
  if (status.ok() && fsync(fd) != 0) status = Failed("fsync", path);
  close(fd);
  return status;
}

Status LoadAll(const Bench& bench, const files::path& path, std::vector<float>* out) {
  checkpoint::Checkpoint opened;
  BITRAIL_TRY(checkpoint::Open(bench.comm, path, &opened));
  const uint64_t count = bench.data.size();
  for (const char* name : {"params", "exp_avg", "exp_avg_sq"}) {
    BITRAIL_TRY(checkpoint::Read(opened, name, Element::float32, count, out->data()));
  }
  BITRAIL_TRY(checkpoint::ReadOfRank(opened, "worker_error", bench.rank, Element::float32, 0, count,
                                     out->data()));
  return checkpoint::ReadOfRank(opened, "server_error", bench.rank, Element::float32, 0,
                                count / static_cast<uint64_t>(bench.ranks), out->data());
}

// Seconds until the slowest rank is done; the disk is idle before.
Status Timed(const Bench& bench, const std::function<Status()>& run, nlohmann::json* seconds) {
  if (bench.rank == 0) sync();
  BITRAIL_TRY(Barrier(bench));
  const int64_t start = now_ns();
  BITRAIL_TRY(run());
  BITRAIL_TRY(Barrier(bench));
  seconds->push_back(static_cast<double>(now_ns() - start) * 1e-9);
  return {};
}

Status Run(Bench& bench, int rounds) {
  const files::path saved = bench.directory / "checkpoint";
  const files::path raw = bench.directory / fmt::format("raw-{}", bench.rank);
  const files::path other = bench.directory / fmt::format("other-{}", bench.rank);
  nlohmann::json save = nlohmann::json::array(), replace = save, write = save, rewrite = save,
                 load = save;
  const auto run_rewrite = [&] {
    BITRAIL_TRY(WriteAndSync(bench, other));
    files::remove(raw);
    return Status();
  };
  const auto run_save = [&] { return checkpoint::Save(bench.comm, saved, bench.content); };
  std::vector<float> out(bench.data.size());
  for (int round = 0; round < rounds; round++) {
    BITRAIL_TRY(Timed(
        bench, [&] { return WriteAndSync(bench, raw); }, &write));
    BITRAIL_TRY(Timed(bench, run_rewrite, &rewrite));
    files::remove(other);
    BITRAIL_TRY(Timed(bench, run_save, &save));
    BITRAIL_TRY(Timed(bench, run_save, &replace));
    BITRAIL_TRY(Timed(
        bench, [&] { return LoadAll(bench, saved, &out); }, &load));
    BITRAIL_TRY(Barrier(bench));
    if (bench.rank == 0) files::remove_all(saved);
  }
  uint64_t bytes = 0;
  const bitrail_status_t code =
      bitrail_allreduce(bench.comm, &bench.bytes, &bytes, 1, BITRAIL_INT64, BITRAIL_SUM, nullptr);
  if (code != BITRAIL_OK) return Status(code, bitrail_last_error());
  if (bench.rank != 0) return {};
  const nlohmann::json result = {{"ranks", bench.ranks}, {"bytes", bytes},     {"save", save},
                                 {"write", write},       {"replace", replace}, {"rewrite", rewrite},
                                 {"load", load}};
  std::puts(result.dump().c_str());
  return {};
}

Status Start(Bench& bench, uint64_t parameters, int rounds) {
  const bitrail_status_t code = bitrail_comm_create(&bench.comm, nullptr);
  if (code != BITRAIL_OK) return Status(code, bitrail_last_error());
  bench.rank = bitrail_comm_rank(bench.comm);
  bench.ranks = bitrail_comm_world_size(bench.comm);
  files::create_directories(bench.directory);
  Fill(bench, parameters);
  return Run(bench, rounds);
}

}  // namespace

int BenchCheckpoint(const std::string& directory, uint64_t parameters, int rounds) {
  Bench bench;
  bench.directory = directory;
  Status status;
  try {
    status = Start(bench, parameters, rounds);
  } catch (const std::exception& error) {  // no memory, or the directory's doing
    status = Status(BITRAIL_ERR_SYSTEM, error.what());
  }
  (void)bitrail_comm_destroy(bench.comm);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench checkpoint: %s\n", status.text().c_str());
  return 1;
}

}  // namespace bitrail::tools
