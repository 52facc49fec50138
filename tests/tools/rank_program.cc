// One rank of a job in which something is wrong. Which thing is the first argument:
//   nan, inf      rank 2's data holds one; a 1-bit allreduce
//   count, type   rank 1 calls allreduce with another count or type
//   collective    rank 1 calls broadcast where the others call allreduce
//   abort         rank 1 aborts
// Prints the status and its text. Exit code 3: refused, and neither the receive buffer nor the
// error state changed; 4: refused, but something changed; 0: nobody refused anything.
#include <bitrail/bitrail.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using Bytes = std::vector<std::byte>;
constexpr size_t kCount = 20'000;

bitrail_status_t onebit(const bitrail::ErrorState& state, const std::vector<float>& send,
                        std::vector<float>* recv) {
  bitrail_onebit_call_t call = {};
  call.struct_size = sizeof call;
  call.send = send.data();
  call.recv = recv->data();
  call.type = BITRAIL_FLOAT32;
  return bitrail_onebit_allreduce(state.get(), &call, nullptr);
}

bitrail_status_t wrong_call(const bitrail::Communicator& comm, const std::string& mode,
                            const std::vector<float>& send, std::vector<float>* recv) {
  const bool odd = comm.rank() == 1;
  if (odd && mode == "collective")
    return bitrail_broadcast(comm.get(), send.data(), recv->data(), kCount, BITRAIL_FLOAT32, 0,
                             nullptr);
  if (odd && mode == "abort") {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    bitrail_comm_abort(comm.get(), "enough");
  }
  const size_t count = odd && mode == "count" ? kCount / 2 : kCount;
  const bitrail_type_t type = odd && mode == "type" ? BITRAIL_INT32 : BITRAIL_FLOAT32;
  return bitrail_allreduce(comm.get(), send.data(), recv->data(), count, type, BITRAIL_SUM,
                           nullptr);
}

int report(bitrail_status_t status, const std::string& text, bool changed) {
  std::printf("status %d: %s\n", static_cast<int>(status), text.c_str());
  if (status == BITRAIL_OK) return 0;
  return changed ? 4 : 3;
}

int not_finite(bitrail::Communicator* comm, const std::string& mode) {
  bitrail::ErrorState state(*comm, std::span(&kCount, 1));
  std::vector<float> send(kCount), recv(kCount);
  for (size_t i = 0; i < kCount; i++)
    send[i] = std::cos(static_cast<float>(i) * static_cast<float>(comm->rank() + 1));
  bitrail::check(onebit(state, send, &recv));  // so that there is state to lose
  const Bytes saved = state.save();
  const std::vector<float> received = recv;
  if (comm->rank() == 2) send[kCount / 3] = mode == "nan" ? NAN : INFINITY;
  const bitrail_status_t status = onebit(state, send, &recv);
  const std::string text = bitrail_last_error();
  const bool changed = state.save() != saved || recv != received || comm->counters().refused != 1;
  // A refused call breaks nothing: the next one works.
  send[kCount / 3] = 1;
  bitrail::check(onebit(state, send, &recv));
  return report(status, text, changed);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    bitrail::Communicator comm;
    if (mode == "nan" || mode == "inf") return not_finite(&comm, mode);
    const std::vector<float> send(kCount, 1);
    std::vector<float> recv(kCount);
    comm.barrier();
    const bitrail_status_t status = wrong_call(comm, mode, send, &recv);
    return report(status, bitrail_last_error(), false);
  } catch (const bitrail::Error& error) {
    std::fprintf(stderr, "rank program: %s\n", error.what());
    return 1;
  }
}
