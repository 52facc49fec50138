// What the two ends of a connection have in common: queue pairs, the two rings, how it is set up,
// how it fails and how it ends.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/verbs/memory.h"
#include "runtime/transport/verbs/operations.h"
#include "runtime/transport/verbs/queue_pair.h"
#include "runtime/transport/verbs/ring.h"

namespace bitrail::transport::verbs {

class Worker;

class Link {
 public:
  Link(std::shared_ptr<Worker> worker, std::string name);
  virtual ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Set-up. offer() makes the connector's queue pairs; answer() the acceptor's, as many as offered.
  // Then connect() until *done; it fails when the deadline has passed.
  Status offer(int device);
  Status answer(int device, const Greeting& theirs);
  Greeting greeting() const;
  Status connect(const Greeting& theirs, Deadline deadline, bool* done);
  // When connect() wants to be called again.
  int64_t retry_ns() const { return retry_ns_; }
  void set_name(const std::string& name) { name_ = name; }

  // From the worker: completions.
  void received(QueuePair* pair, const ibv_wc& completion);
  void sent(QueuePair* pair, const ibv_wc& completion);
  void errored(QueuePair* pair, const ibv_wc& completion);
  bool uses(const Port& port) const;
  // Asks the device whether the queue pairs at this port still work.
  void check_queue_pairs(const Port& port);

  // Asks a peer that was silent for so long whether it is there, while something waits for it: by a
  // word that the peer's device acknowledges. A device that does not fails the connection.
  void keep_alive(int64_t now_ns, int64_t period_ns);
  // When keep_alive() wants to be called.
  int64_t keep_alive_ns(int64_t period_ns) const;

  // Ends the connection once what has arrived was looked at. The first reason stays.
  void fail(Status why);
  const Status& failing() const { return failing_; }
  const Status& failure_reason() const { return failure_; }
  // Nothing goes out or comes in any more when it returns; every request ends with this status.
  void end(const Status& why);
  bool ended() const { return pairs_.empty(); }
  // Tells the peer, after all else.
  void say_goodbye();
  // The peer's device has all that was posted.
  bool quiet() const;
  virtual size_t outstanding() const = 0;
  // A request needs something from the peer.
  virtual bool has_requests() const = 0;
  const std::string& name() const { return name_; }

 protected:
  struct Shape {
    uint32_t in_units, out_units, eager_bytes;
    QueuePairSize first, others;
  };
  virtual Shape shape() const = 0;
  virtual void on_entry(const Entry& entry) = 0;
  virtual void on_acknowledged(Note* note) = 0;
  virtual void on_data(QueuePair* pair, uint32_t receive_id) = 0;
  virtual void on_part_sent(uint32_t send_id) = 0;
  virtual void on_end(const Status& why) = 0;
  // Something may go on: there is room, or the peer is ready.
  virtual void pump() = 0;
  virtual void on_connected() {}

  // Ring entries. write() only after room().
  bool room(uint64_t entry_bytes) const;
  Note* write(Entry* entry);
  size_t rail_count() const { return rails_.size(); }
  uint32_t ring_written() const { return out_.written(); }
  void send_word(Signal signal, uint32_t value, bool signaled);
  void nonsense(const char* what);

  // Keys of a range at all rails: the caller's registration, or one made for the time being.
  Status take_keys(const void* data, size_t bytes, Memory* memory, Keys* keys);
  void release_keys(Keys* keys);

  std::shared_ptr<Worker> worker_;
  std::string name_;
  std::vector<std::unique_ptr<QueuePair>> pairs_;
  uint32_t peer_eager_bytes_ = 0;
  bool open_ = false;  // the peer may be written to
  Status failure_;     // why it ended; OK while it works

 private:
  Status choose_rails(int device, size_t most);
  Status make_memory();
  Status add_pair(int rail);
  void release_memory();
  void post(QueuePair* pair, ibv_send_wr* work, bool signaled);
  void acknowledge(uint32_t position);
  void give_credit();

  struct Rail {
    std::shared_ptr<Port> port;
    size_t index;  // of the port in the context
  };
  std::vector<Rail> rails_;
  OutRing out_;
  InRing in_;
  uint8_t* memory_ = nullptr;  // the own ring, then the staging memory
  size_t memory_bytes_ = 0;
  ibv_mr* registration_ = nullptr;
  uint64_t ring_address_ = 0;  // the peer's
  uint32_t ring_rkey_ = 0;
  uint32_t signaled_position_ = 0;
  bool connected_ = false, goodbye_said_ = false;
  int64_t retry_ns_ = INT64_MAX;
  int retries_ = 0;
  // heard_ counts what came; it was heard_before_ at silent_since_ns_. 0: not looked at.
  uint32_t heard_ = 0, heard_before_ = 0;
  int64_t silent_since_ns_ = 0;
  Status failing_;
};

}  // namespace bitrail::transport::verbs
