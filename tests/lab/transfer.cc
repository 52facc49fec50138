// Moves data between ranks in a given pattern over a transport alone and prints how long it took:
// the same program under the link emulation and in the lab, so that their times can be compared.
//
//   transfer DIRECTORY PATTERN BYTES PIECE [--mbps M] [--us U] [--bind ADDRESS]
//
// PATTERN: "one" (rank 0 to rank 1), "all" (everybody to everybody), "in" (everybody to rank 0).
// BYTES goes to each peer, in messages of PIECE bytes; receives are posted first. Rank and world
// size are BITRAIL_RANK and BITRAIL_WORLD_SIZE; DIRECTORY is shared and empty at the start. Each
// rank writes "start end" (nanoseconds, one clock for the machine) to DIRECTORY/times.RANK.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "runtime/common/clock.h"
#include "runtime/transport/transport.h"

using namespace bitrail;  // NOLINT(google-build-using-namespace): a program, not a header
using namespace bitrail::transport;  // NOLINT

namespace {

struct Arguments {
  std::string directory, pattern;
  size_t bytes = 0, piece = 0;
  int rank = 0, world = 1;
  Options options;
};

struct PeerLink {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  std::unique_ptr<Context::Connecting> pending;
  std::vector<uint8_t> out, in;
};

[[noreturn]] void die(const std::string& text) {
  fprintf(stderr, "transfer: %s\n", text.c_str());
  exit(1);
}

void must(const Status& status) {
  if (!status.ok()) die(status.text());
}

std::string file_of(const Arguments& arguments, const char* what, int rank) {
  return arguments.directory + "/" + what + "." + std::to_string(rank);
}

void publish(const Arguments& arguments, const char* what, const std::string& text) {
  const std::string name = file_of(arguments, what, arguments.rank);
  std::ofstream(name + ".new", std::ios::binary) << text;
  if (rename((name + ".new").c_str(), name.c_str()) != 0) die("cannot write " + name);
}

std::string await(const Arguments& arguments, const char* what, int rank, Context* context) {
  const Deadline deadline = Deadline::in_ms(60'000);
  for (;;) {
    std::ifstream file(file_of(arguments, what, rank), std::ios::binary);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
    if (deadline.passed()) die("rank " + std::to_string(rank) + " does not come");
    context->progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool sends(const std::string& pattern, int from, int to) {
  if (from == to) return false;
  if (pattern == "one") return from == 0 && to == 1;
  if (pattern == "in") return to == 0;
  return true;
}

// Progresses, asleep while there is nothing to do.
template <typename Done>
void run_until(Context* context, Done done) {
  const Deadline deadline = Deadline::in_ms(120'000);
  int idle_rounds = 0;
  while (!done()) {
    if (context->progress() > 0) {
      idle_rounds = 0;
      continue;
    }
    if (deadline.passed()) die("the transfer hangs");
    if (++idle_rounds < 20) continue;
    bool idle = false;
    must(context->arm(&idle));
    if (!idle) continue;
    const int64_t left = std::clamp<int64_t>(context->next_timer_ns() - now_ns(), 0, 10'000'000);
    timespec time{0, left};
    pollfd entry{context->event_fd(), POLLIN, 0};
    ppoll(&entry, 1, &time, nullptr);
  }
}

void connect_all(const Arguments& arguments, Context* context, std::vector<PeerLink>* peers) {
  Handle mine;
  std::unique_ptr<Listener> listener;
  must(context->listen(0, &mine, &listener));
  publish(arguments, "handle", std::string(mine.bytes.begin(), mine.bytes.end()));
  std::vector<Handle> handles(peers->size());
  for (int rank = 0; rank < arguments.world; rank++) {
    const std::string bytes = await(arguments, "handle", rank, context);
    memcpy(handles[rank].bytes.data(), bytes.data(), std::min(bytes.size(), sizeof(Handle)));
  }
  int left = 2 * (arguments.world - 1);
  while (left > 0) {
    for (int rank = 0; rank < arguments.world; rank++) {
      PeerLink& peer = (*peers)[rank];
      if (rank == arguments.rank || peer.sender != nullptr) continue;
      must(context->connect(0, handles[rank], {rank}, Deadline::in_ms(60'000), &peer.pending,
                            &peer.sender));
      if (peer.sender != nullptr) left--;
    }
    std::unique_ptr<Receiver> receiver;
    Peer who;
    must(listener->accept(&receiver, &who));
    if (receiver != nullptr) {
      (*peers)[who.rank].receiver = std::move(receiver);
      left--;
    }
    context->progress();
  }
}

// One piece of the pattern's messages with every peer. `bytes` to each.
void exchange(const Arguments& arguments, Context* context, std::vector<PeerLink>* peers,
              const std::string& pattern, size_t bytes, uint64_t tag) {
  const size_t pieces = (bytes + arguments.piece - 1) / arguments.piece;
  std::vector<Request> receives(pieces * peers->size()), sent(pieces * peers->size());
  for (size_t i = 0; i < pieces; i++) {
    const size_t offset = i * arguments.piece, size = std::min(arguments.piece, bytes - offset);
    for (int step = 1; step < arguments.world; step++) {
      const int from = (arguments.rank + step) % arguments.world;
      if (!sends(pattern, from, arguments.rank)) continue;
      Buffer buffer;
      buffer.data = (*peers)[from].in.data() + offset;
      buffer.bytes = size;
      buffer.tag = tag;
      Request* request = &receives[i * peers->size() + static_cast<size_t>(from)];
      bool accepted = false;
      run_until(context, [&] {
        must((*peers)[from].receiver->irecv(1, &buffer, request, &accepted));
        return accepted;
      });
    }
  }
  for (size_t i = 0; i < pieces; i++) {
    const size_t offset = i * arguments.piece, size = std::min(arguments.piece, bytes - offset);
    for (int step = 1; step < arguments.world; step++) {
      const int to = (arguments.rank + step) % arguments.world;
      if (!sends(pattern, arguments.rank, to)) continue;
      Request* request = &sent[i * peers->size() + static_cast<size_t>(to)];
      bool accepted = false;
      run_until(context, [&] {
        must((*peers)[to].sender->isend((*peers)[to].out.data() + offset, size, tag, 0, nullptr,
                                        request, &accepted));
        return accepted;
      });
    }
  }
  run_until(context, [&] {
    const auto done = [](const Request& request) { return request.done; };
    return std::all_of(receives.begin(), receives.end(), done) &&
           std::all_of(sent.begin(), sent.end(), done);
  });
  for (const Request& request : receives) {
    if (request.status != BITRAIL_OK) die(request.text);
  }
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  if (argc < 5) die("DIRECTORY PATTERN BYTES PIECE [--mbps M] [--us U] [--bind ADDRESS]");
  arguments.directory = argv[1];
  arguments.pattern = argv[2];
  arguments.bytes = strtoull(argv[3], nullptr, 0);
  arguments.piece = strtoull(argv[4], nullptr, 0);
  for (int i = 5; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--mbps") arguments.options.link_mbps = atof(argv[i + 1]);
    if (name == "--us") arguments.options.link_us = atof(argv[i + 1]);
    if (name == "--bind") arguments.options.bind_address = argv[i + 1];
  }
  const char* rank = getenv("BITRAIL_RANK");
  const char* world = getenv("BITRAIL_WORLD_SIZE");
  if (rank == nullptr || world == nullptr) die("BITRAIL_RANK and BITRAIL_WORLD_SIZE are not set");
  arguments.rank = atoi(rank);
  arguments.world = atoi(world);
  arguments.options.identity = {"lab", arguments.directory, arguments.rank};
  arguments.options.world_size = arguments.world;
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::unique_ptr<Context> context;
  must(open("ucx", arguments.options, &context));
  std::vector<PeerLink> peers(static_cast<size_t>(arguments.world));
  for (PeerLink& peer : peers) {
    peer.out.assign(arguments.bytes, static_cast<uint8_t>(arguments.rank));
    peer.in.assign(arguments.bytes, 0xff);
  }
  connect_all(arguments, context.get(), &peers);
  exchange(arguments, context.get(), &peers, "all", std::min<size_t>(8, arguments.bytes), 1);
  const int64_t start = now_ns();
  exchange(arguments, context.get(), &peers, arguments.pattern, arguments.bytes, 2);
  const int64_t end = now_ns();
  for (int from = 0; from < arguments.world; from++) {
    const std::vector<uint8_t>& in = peers[static_cast<size_t>(from)].in;
    if (!sends(arguments.pattern, from, arguments.rank)) continue;
    if (std::count(in.begin(), in.end(), from) != static_cast<std::ptrdiff_t>(in.size())) {
      die("wrong data from rank " + std::to_string(from));
    }
  }
  publish(arguments, "times", fmt::format("{} {}\n", start, end));
  // Nobody leaves while others still need an answer.
  for (int rank = 0; rank < arguments.world; rank++) await(arguments, "times", rank, context.get());
  return 0;
}
