// One way from rank 0 to rank 1 and one byte each way: what tools/bench/plugin times over the
// plugin's table and over a plain TCP socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace bitrail::bench {

struct Setting {
  std::string directory;  // shared by the two ranks, empty at the start
  int rank = 0;
  std::string address;  // tcp: where rank 1 listens
  std::string file;     // the plugin; empty: tcp
  size_t bytes = 0;     // of a message
  size_t window = 0;    // messages in flight
};

// Ends the program when anything fails. Two ranks make theirs at the same time.
class Pipe {
 public:
  virtual ~Pipe() = default;
  virtual void swap() = 0;  // returns when both ranks called it
  // `data` is the message's bytes, the same for all.
  virtual void send(const void* data, size_t count) = 0;
  // After prepare() and a swap(): the time when the last one came.
  virtual void prepare(void* data, size_t count) = 0;
  virtual int64_t receive(void* data, size_t count) = 0;
};

std::unique_ptr<Pipe> open_table(const Setting& setting);
std::unique_ptr<Pipe> open_tcp(const Setting& setting);

// Text that goes from rank to rank through files of the directory.
void publish(const Setting& setting, const char* what, const std::string& text);
std::string await(const Setting& setting, const char* what, int rank);

[[noreturn]] void die(const std::string& text);
inline void must(bool condition, const char* text) {
  if (!condition) die(text);
}

}  // namespace bitrail::bench
