#include "runtime/transport/verbs/link.h"

#include <arpa/inet.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/worker.h"

namespace bitrail::transport::verbs {
namespace {

// modify_qp that timed out (the subnet manager or the fabric is busy) is tried so often, so far
// apart.
constexpr int kConnectRetries = 30;
constexpr int64_t kConnectPauseNs = 100'000'000;

size_t most_rails(const IbOptions& options) {
  return static_cast<size_t>(std::clamp<int64_t>(options.rails, 1, kMaxRails));
}

}  // namespace

Link::Link(std::shared_ptr<Worker> worker, std::string name)
    : worker_(std::move(worker)), name_(std::move(name)) {
  worker_->links.push_back(this);
}

Link::~Link() {
  std::erase(worker_->links, this);
  std::erase(worker_->failing, this);
}

Status Link::choose_rails(int device, size_t most) {
  const auto& ports = worker_->ports();
  std::string why;
  for (const size_t index : worker_->ports_of(device)) {
    if (rails_.size() == most) break;
    const Status usable = worker_->make_usable(index);
    if (usable.ok()) {
      rails_.push_back({ports[index], index});
    } else {
      why += (why.empty() ? "" : "; ") + usable.text();
    }
  }
  if (!rails_.empty()) return {};
  return failure(BITRAIL_ERR_SYSTEM, "no usable port for the connection with {}: {}", name_, why);
}

Status Link::make_memory() {
  const Shape wanted = shape();
  memory_bytes_ = size_t{wanted.in_units + wanted.out_units} * kUnitBytes;
  // Pages of its own: they are kept from forked children.
  void* memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return failure(BITRAIL_ERR_NO_MEMORY, "mmap of {} bytes: {}", memory_bytes_, strerror(errno));
  }
  memory_ = static_cast<uint8_t*>(memory);
  const Port& port = *rails_[0].port;
  registration_ = table().reg_mr(port.pd, memory_, memory_bytes_,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (registration_ == nullptr) {
    return failure(BITRAIL_ERR_SYSTEM, "{}: {} bytes for the connection with {}: {}", port.name,
                   memory_bytes_, name_, errno_text("reg_mr", errno));
  }
  in_.open(memory_, wanted.in_units);
  return {};
}

Status Link::add_pair(int rail) {
  auto pair = std::make_unique<QueuePair>();
  pair->link = this;
  pair->index = static_cast<int>(pairs_.size());
  pair->rail = rail;
  const size_t at = static_cast<size_t>(rail) % rails_.size();
  pair->port = rails_[at].port;
  const Shape wanted = shape();
  const QueuePairSize& size = pairs_.empty() ? wanted.first : wanted.others;
  BITRAIL_TRY(
      worker_->promise_completions(rails_[at].index, completions_of(size), &pair->completions));
  pair->id = worker_->pairs.insert(pair.get());
  pairs_.push_back(std::move(pair));
  return create_queue_pair(worker_->ib_options(), size, pairs_.back().get());
}

Status Link::offer(int device) {
  const IbOptions& options = worker_->ib_options();
  BITRAIL_TRY(choose_rails(device, most_rails(options)));
  BITRAIL_TRY(make_memory());
  const auto rails = static_cast<int64_t>(rails_.size());
  const int64_t count = std::min<int64_t>(rails * options.qps_per_connection, kMaxQueuePairs);
  for (int64_t i = 0; i < count; i++) BITRAIL_TRY(add_pair(static_cast<int>(i % rails)));
  return {};
}

Status Link::answer(int device, const Greeting& theirs) {
  size_t rails = 0;
  for (const QueuePairFacts& facts : theirs.queue_pairs) {
    rails = std::max<size_t>(rails, facts.rail + 1U);
  }
  if (theirs.queue_pairs[0].rail != 0) {
    return failure(BITRAIL_ERR_PROTOCOL, "the first queue pair is not of the first port");
  }
  BITRAIL_TRY(choose_rails(device, std::min(rails, most_rails(worker_->ib_options()))));
  BITRAIL_TRY(make_memory());
  for (const QueuePairFacts& facts : theirs.queue_pairs) BITRAIL_TRY(add_pair(facts.rail));
  return {};
}

Greeting Link::greeting() const {
  const Shape wanted = shape();
  Greeting greeting;
  greeting.ring_address = reinterpret_cast<uint64_t>(memory_);
  greeting.ring_rkey = registration_->rkey;
  greeting.ring_units = wanted.in_units;
  greeting.eager_bytes = wanted.eager_bytes;
  for (const auto& pair : pairs_) greeting.queue_pairs.push_back(facts_of(*pair));
  return greeting;
}

Status Link::connect(const Greeting& theirs, Deadline deadline, bool* done) {
  *done = false;
  if (!failing_.ok()) return failing_;
  if (!failure_.ok()) return failure_;
  if (theirs.queue_pairs.size() != pairs_.size()) {
    return failure(BITRAIL_ERR_PROTOCOL, "{} answers with {} queue pairs instead of {}", name_,
                   theirs.queue_pairs.size(), pairs_.size());
  }
  if (retry_ns_ != INT64_MAX && now_ns() < retry_ns_) return {};
  retry_ns_ = INT64_MAX;
  for (size_t i = 0; i < pairs_.size(); i++) {
    bool again = false;
    Status status = connect_queue_pair(worker_->ib_options(), theirs.queue_pairs[i], name_,
                                       pairs_[i].get(), &again);
    if (status.ok()) continue;
    if (!again || ++retries_ > kConnectRetries || deadline.passed()) return status;
    retry_ns_ = std::min(now_ns() + kConnectPauseNs, deadline.at_ns);
    return {};
  }
  const Shape wanted = shape();
  // The staging memory mirrors the peer's ring, as far as there is any.
  out_.open(memory_ + size_t{wanted.in_units} * kUnitBytes,
            std::min(wanted.out_units, theirs.ring_units));
  if (theirs.ring_units != wanted.out_units) {
    return failure(BITRAIL_ERR_PROTOCOL, "{} has a ring of {} units instead of {}", name_,
                   theirs.ring_units, wanted.out_units);
  }
  ring_address_ = theirs.ring_address;
  ring_rkey_ = theirs.ring_rkey;
  peer_eager_bytes_ = theirs.eager_bytes;
  connected_ = true;
  *done = true;
  on_connected();
  return {};
}

void Link::received(QueuePair* pair, const ibv_wc& completion) {
  pair->missing_receives++;
  Immediate immediate{};
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0 ||
      !parse_immediate(ntohl(completion.imm_data), &immediate) ||
      (immediate.signal != Signal::data && pair->index != 0)) {
    return nonsense("an immediate");
  }
  worker_->moved++;
  heard_++;
  switch (immediate.signal) {
    case Signal::data:
      on_data(pair, immediate.value);
      break;
    case Signal::entry: {
      Entry entry;
      if (!in_.take(immediate.value, &entry)) return nonsense("an entry");
      acknowledge(entry.consumed);
      if (failing_.ok()) on_entry(entry);
      break;
    }
    case Signal::credit:
      acknowledge(out_.extend(immediate.value));
      break;
    case Signal::hello:
      open_ = true;
      break;
    case Signal::goodbye:
      fail(failure(BITRAIL_ERR_PEER_LOST, "{} has closed the connection", name_));
      return;
  }
  if (pairs_.empty()) return;
  pump();
  give_credit();
  const int error = refill_receives(pair, false);
  if (error != 0) {
    fail(failure(BITRAIL_ERR_SYSTEM, "receive from {}: {}", name_, errno_text("post_recv", error)));
  }
}

void Link::acknowledge(uint32_t position) {
  if (!out_.acknowledge(position, [this](Note* note) { on_acknowledged(note); })) {
    nonsense("an acknowledgement");
  }
}

void Link::sent(QueuePair* pair, const ibv_wc& completion) {
  QueuePair::Mark mark{};
  if (!retire_sends(pair, completion.wr_id, &mark)) {
    fail(failure(BITRAIL_ERR_SYSTEM,
                 "{} reports the completion of a send to {} that was not posted", pair->port->name,
                 name_));
    return;
  }
  if (pair->index == 0) out_.sent(mark.ring_position);
  if (mark.send_id != 0) on_part_sent(mark.send_id);
  if (pairs_.empty()) return;
  pump();
  give_credit();
}

void Link::give_credit() {
  if (!open_ || goodbye_said_ || !in_.credit_due() || !failing_.ok()) return;
  if (!send_room(*pairs_[0], 0)) return;  // when one of the posted is complete
  send_word(Signal::credit, in_.consumed(), false);
  in_.told();
}

void Link::errored(QueuePair* pair, const ibv_wc& completion) {
  // What was flushed only follows from something else, which the device has reported or will.
  fail(failure(BITRAIL_ERR_PEER_LOST, "connection with {} over {} is lost: {}", name_,
               pair->port->name, completion_text(completion.status, completion.vendor_err)));
}

bool Link::uses(const Port& port) const {
  return std::any_of(pairs_.begin(), pairs_.end(),
                     [&port](const auto& pair) { return pair->port.get() == &port; });
}

void Link::check_queue_pairs(const Port& port) {
  for (const auto& pair : pairs_) {
    if (pair->port.get() != &port || pair->qp == nullptr) continue;
    ibv_qp_attr attributes{};
    ibv_qp_init_attr made{};
    const int error = table().query_qp(pair->qp, &attributes, IBV_QP_STATE, &made);
    if (error == 0 && attributes.qp_state != IBV_QPS_ERR && attributes.qp_state != IBV_QPS_SQE) {
      continue;
    }
    fail(failure(BITRAIL_ERR_PEER_LOST,
                 "connection with {} is lost: {} reports a fatal error of queue pair {}", name_,
                 port.name, pair->qp->qp_num));
  }
}

void Link::keep_alive(int64_t now_ns, int64_t period_ns) {
  if (!open_ || goodbye_said_ || pairs_.empty() || !failing_.ok() || !has_requests()) {
    silent_since_ns_ = 0;
    return;
  }
  if (silent_since_ns_ == 0 || heard_ != heard_before_) {
    heard_before_ = heard_;
    silent_since_ns_ = now_ns;
    return;
  }
  if (now_ns - silent_since_ns_ < period_ns) return;
  silent_since_ns_ = now_ns;
  // What is on its way asks as well; and there is one question at a time.
  if (pairs_[0]->first_mark != pairs_[0]->next_mark || !send_room(*pairs_[0], 0)) return;
  send_word(Signal::credit, in_.consumed(), true);
  in_.told();
}

int64_t Link::keep_alive_ns(int64_t period_ns) const {
  return silent_since_ns_ == 0 ? INT64_MAX : silent_since_ns_ + period_ns;
}

void Link::fail(Status why) {
  if (!failing_.ok() || !failure_.ok()) return;
  failing_ = std::move(why);
  worker_->failing.push_back(this);
}

void Link::nonsense(const char* what) {
  fail(failure(BITRAIL_ERR_PROTOCOL, "{} sent {} that makes no sense", name_, what));
}

void Link::end(const Status& why) {
  if (failure_.ok()) failure_ = why;
  for (const auto& pair : pairs_) {
    destroy_queue_pair(pair.get());
    worker_->pairs.erase(pair->id);
    pair->completions->used -= completions_of(pair->index == 0 ? shape().first : shape().others);
  }
  // Kept until here: on_end() may call back, and callers may ask.
  const std::vector<std::unique_ptr<QueuePair>> gone = std::move(pairs_);
  pairs_.clear();
  release_memory();
  on_end(why);
}

void Link::release_memory() {
  if (registration_ != nullptr) table().dereg_mr(registration_);
  registration_ = nullptr;
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  memory_ = nullptr;
}

void Link::say_goodbye() {
  if (!connected_ || goodbye_said_ || pairs_.empty() || !failing_.ok() || !failure_.ok()) return;
  goodbye_said_ = true;
  if (open_) send_word(Signal::goodbye, 0, true);
}

bool Link::quiet() const {
  if (!failing_.ok() || !failure_.ok()) return true;
  return std::all_of(pairs_.begin(), pairs_.end(), [](const auto& pair) {
    return pair->posted == pair->retired + pair->unsignaled;
  });
}

void Link::post(QueuePair* pair, ibv_send_wr* work, bool signaled) {
  const int error = post_send(pair, work, signaled, 0, out_.written());
  if (error != 0) {
    fail(failure(BITRAIL_ERR_SYSTEM, "send to {}: {}", name_, errno_text("post_send", error)));
  }
}

void Link::send_word(Signal signal, uint32_t value, bool signaled) {
  ibv_send_wr work{};
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.imm_data = htonl(encode_immediate({signal, value}));
  work.wr.rdma.remote_addr = ring_address_;
  work.wr.rdma.rkey = ring_rkey_;
  post(pairs_[0].get(), &work, signaled);
}

bool Link::room(uint64_t entry_bytes) const {
  return open_ && !pairs_.empty() && failing_.ok() && !goodbye_said_ && send_room(*pairs_[0], 1) &&
         out_.room(entry_units(entry_bytes));
}

Note* Link::write(Entry* entry) {
  const size_t length = entry->kind == EntryKind::eager ? kEagerHeaderBytes + entry->bytes
                        : entry->kind == EntryKind::clear || entry->kind == EntryKind::grant
                            ? kEntryHeaderBytes
                            : kEagerHeaderBytes;
  const uint32_t units = entry_units(length);
  uint8_t* staging = nullptr;
  entry->position = out_.place(units, &staging);
  entry->consumed = in_.consumed();
  in_.told();
  ibv_sge piece{};
  piece.addr = reinterpret_cast<uint64_t>(staging);
  piece.length = static_cast<uint32_t>(encode_entry(*entry, staging));
  piece.lkey = registration_->lkey;
  QueuePair* pair = pairs_[0].get();
  const uint32_t offset = out_.offset(entry->position);
  ibv_send_wr work{};
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.send_flags = piece.length <= pair->inline_bytes ? unsigned{IBV_SEND_INLINE} : 0U;
  work.imm_data = htonl(encode_immediate({Signal::entry, offset}));
  work.wr.rdma.remote_addr = ring_address_ + uint64_t{offset} * kUnitBytes;
  work.wr.rdma.rkey = ring_rkey_;
  Note* note = out_.commit(entry->position, units);
  // The staging memory is free again once a completion says so.
  const bool due = out_.written() - signaled_position_ >= shape().out_units / 4;
  if (due) signaled_position_ = out_.written();
  post(pair, &work, due);
  return note;
}

Status Link::take_keys(const void* data, size_t bytes, Memory* memory, Keys* keys) {
  memset(keys, 0, sizeof(*keys));
  for (size_t i = 0; i < rails_.size(); i++) {
    if (memory != nullptr) {
      const auto* registered = static_cast<const VerbsMemory*>(memory);
      if (!registered->covers(data, bytes)) {
        return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                       "{} bytes for {} lie outside the memory that was registered for them", bytes,
                       name_);
      }
      keys->local[i] = registered->lkey(rails_[i].index);
      keys->remote[i] = registered->rkey(rails_[i].index);
      continue;
    }
    Status status =
        rails_[i].port->registrations->acquire(const_cast<void*>(data), bytes, &keys->held[i]);
    if (!status.ok()) {
      keys->held[i] = nullptr;
      release_keys(keys);
      return status;
    }
    keys->local[i] = keys->held[i]->lkey;
    keys->remote[i] = keys->held[i]->rkey;
  }
  return {};
}

void Link::release_keys(Keys* keys) {
  for (size_t i = 0; i < rails_.size(); i++) {
    if (keys->held[i] != nullptr) rails_[i].port->registrations->release(keys->held[i]);
    keys->held[i] = nullptr;
  }
}

}  // namespace bitrail::transport::verbs
