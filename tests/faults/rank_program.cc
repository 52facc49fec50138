// One rank of a job to which something happens from outside, or which misbehaves itself:
//   rank_program collectives BYTES SECONDS   all ranks: allreduce and alltoall, every byte checked
//   rank_program never BYTES SECONDS         rank 1 receives nothing of what the others send
//   rank_program freed BYTES SECONDS         rank 1 unmaps what it is sending
// Prints "running" once the first round was right, then how it ends: "right N rounds" (exit code 0)
// or "status S: TEXT" (exit code 3: and nothing wrote into the buffers for a while after). Exit
// code 4: wrong data, buffers that changed, descriptors or threads left behind; the text says
// which.
#include <sys/mman.h>

#include <bitrail/bitrail.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/entries.h"

namespace {

constexpr int kRefused = 3, kBroken = 4;
using Words = std::vector<int64_t>;

struct Outcome {
  bitrail_status_t status = BITRAIL_OK;
  std::string text;
  long rounds = 0;
  bool wrong = false;
};

int64_t value(int64_t rank, int64_t round, size_t i) {
  return static_cast<int64_t>(
      (static_cast<uint64_t>(rank * 7919 + round * 104729) + i) * 0x9e3779b97f4a7c15U >> 24);
}

bool failed(bitrail_status_t status, Outcome* outcome) {
  if (status == BITRAIL_OK) return false;
  outcome->status = status;
  outcome->text = bitrail_last_error();
  return true;
}

// One allreduce and one alltoall; false: a call failed.
bool round_of(const bitrail::Communicator& comm, long round, Words* send, Words* recv,
              Outcome* outcome) {
  const int size = comm.world_size();
  for (size_t i = 0; i < send->size(); i++) (*send)[i] = value(comm.rank(), round, i);
  if (failed(bitrail_allreduce(comm.get(), send->data(), recv->data(), send->size(), BITRAIL_INT64,
                               BITRAIL_SUM, nullptr),
             outcome))
    return false;
  for (size_t i = 0; i < recv->size(); i++) {
    int64_t sum = 0;
    for (int rank = 0; rank < size; rank++) sum += value(rank, round, i);
    outcome->wrong |= (*recv)[i] != sum;
  }
  const size_t part = send->size() / static_cast<size_t>(size);
  if (failed(bitrail_alltoall(comm.get(), send->data(), recv->data(), part, BITRAIL_INT64, nullptr),
             outcome))
    return false;
  for (size_t i = 0; i < part * static_cast<size_t>(size); i++) {
    const auto from = static_cast<int64_t>(i / part);
    const size_t index = static_cast<size_t>(comm.rank()) * part + i % part;
    outcome->wrong |= (*recv)[i] != value(from, round, index);
  }
  return !outcome->wrong;
}

void collectives(const bitrail::Communicator& comm, size_t bytes, double seconds, Words* send,
                 Words* recv, Outcome* outcome) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  send->resize(bytes / sizeof(int64_t));
  recv->resize(send->size());
  for (int64_t go_on = 1; go_on != 0; outcome->rounds++) {
    if (!round_of(comm, outcome->rounds, send, recv, outcome)) return;
    if (outcome->rounds == 0) {
      std::puts("running");
      (void)std::fflush(stdout);
    }
    go_on = comm.rank() == 0 && std::chrono::steady_clock::now() < end ? 1 : 0;
    // Everybody waits for everybody, so that the one who stands still is the one who is named.
    if (failed(
            bitrail_allreduce(comm.get(), &go_on, &go_on, 1, BITRAIL_INT64, BITRAIL_MAX, nullptr),
            outcome))
      return;
  }
}

// The others send to rank 1 what it never receives.
void never(const bitrail::Communicator& comm, size_t bytes, double seconds, Words* send,
           Outcome* outcome) {
  send->resize(bytes / sizeof(int64_t));
  if (comm.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    failed(bitrail_barrier(comm.get(), nullptr), outcome);
    return;
  }
  bitrail_request_t request = nullptr;
  if (failed(bitrail_send(comm.get(), send->data(), bytes, 1, 0, &request), outcome)) return;
  failed(bitrail_wait(&request), outcome);
}

// Rank 1 sends from memory that it takes away. It may die of it; the others may not.
void freed(const bitrail::Communicator& comm, size_t bytes, Words* recv, Outcome* outcome) {
  if (comm.rank() == 1) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    std::vector<bitrail_request_t> requests(static_cast<size_t>(comm.world_size()));
    for (int rank = 0; rank < comm.world_size(); rank++) {
      if (rank == 1) continue;
      if (failed(bitrail_send(comm.get(), memory, bytes, rank, 0,
                              &requests[static_cast<size_t>(rank)]),
                 outcome))
        return;
    }
    munmap(memory, bytes);
    for (bitrail_request_t& request : requests) {
      if (request != nullptr) failed(bitrail_wait(&request), outcome);
    }
    return;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  recv->assign(bytes / sizeof(int64_t), -1);
  bitrail_request_t request = nullptr;
  if (failed(bitrail_recv(comm.get(), recv->data(), bytes, 1, 0, nullptr, &request), outcome))
    return;
  if (failed(bitrail_wait(&request), outcome)) return;
  for (const int64_t word : *recv) outcome->wrong |= word != 0;
}

int run(const std::string& mode, size_t bytes, double seconds) {
  Words send, recv;
  Outcome outcome;
  try {
    const bitrail::Communicator comm;
    if (mode == "collectives") collectives(comm, bytes, seconds, &send, &recv, &outcome);
    if (mode == "never") never(comm, bytes, seconds, &send, &outcome);
    if (mode == "freed") freed(comm, bytes, &recv, &outcome);
    if (outcome.status != BITRAIL_OK) {
      std::printf("status %d: %s\n", static_cast<int>(outcome.status), outcome.text.c_str());
      (void)std::fflush(stdout);
      const Words received(recv.begin(), recv.end());  // nobody writes to what is sent
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      if (received != recv) {
        std::puts("BROKEN: buffers changed after the error");
        return kBroken;
      }
    }
  } catch (const bitrail::Error& error) {
    std::printf("status %d: %s\n", static_cast<int>(error.status()), error.what());
    return kRefused;
  }
  if (outcome.wrong) {
    std::printf("BROKEN: wrong data in round %ld\n", outcome.rounds);
    return kBroken;
  }
  if (outcome.status != BITRAIL_OK) return kRefused;
  std::printf("right %ld rounds\n", outcome.rounds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  using namespace bitrail::test;
  // A process may keep one descriptor of a library's; each connection would leave more.
  const long files = entries(kDescriptors) + 1;
  int code = run(argv[1], std::strtoull(argv[2], nullptr, 0), std::strtod(argv[3], nullptr));
  const long left_files = entries_left(kDescriptors, files) - files;
  const long left_threads = entries_left(kThreads, 1) - 1;
  std::printf("left: %ld descriptors, %ld threads\n", left_files + 1, left_threads);
  if (left_files > 0 || left_threads > 0) {
    std::puts("BROKEN: something is left behind");
    code = kBroken;
  }
  return code;
}
