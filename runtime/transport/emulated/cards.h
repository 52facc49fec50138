// The cards of all emulated nodes of a job, in a shared memory segment named after the job, so that
// all processes and threads of the job on this machine see the same ones. The last user removes it.
#pragma once

#include <memory>
#include <string>

#include "runtime/common/status.h"
#include "runtime/transport/emulated/link.h"

namespace bitrail::transport::emulated {

class Cards {
 public:
  // `nodes` and `ranks` are the job's; every rank gives the same.
  static Status open(const std::string& job_id, const std::string& secret, int nodes, int ranks,
                     std::unique_ptr<Cards>* cards);
  ~Cards();
  Cards(const Cards&) = delete;
  Cards& operator=(const Cards&) = delete;

  Card* node(int index) { return &nodes_[index]; }
  const std::string& name() const { return name_; }

 private:
  struct Users;
  Cards() = default;
  Status try_open(bool* again);

  std::string name_;  // of the segment
  int fd_ = -1;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  int node_count_ = 0, seats_ = 0;
  Card* nodes_ = nullptr;
  std::atomic<int32_t>* pids_ = nullptr;  // a seat for each user: its process, 0 when free
  int seat_ = -1;
};

}  // namespace bitrail::transport::emulated
