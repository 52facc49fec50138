// Thin C++ header on bitrail.h: owners, spans, and exceptions that carry status and text.
//
// Objects move and do not copy. Destructors never throw: a failure while leaving is dropped, as
// with every C++ owner. Everything else throws bitrail::Error unless it says otherwise. The rules
// about threads, memory and order of calls are bitrail.h's. Stable like bitrail.h.
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bitrail {

class Error : public std::runtime_error {
 public:
  Error(bitrail_status_t status, const std::string& text)
      : std::runtime_error(std::string(bitrail_status_string(status)) + ": " + text),
        status_(status) {}
  bitrail_status_t status() const noexcept { return status_; }

 private:
  bitrail_status_t status_;
};

inline void check(bitrail_status_t status) {
  if (status != BITRAIL_OK) throw Error(status, bitrail_last_error());
}

// The element type of a C++ type. 16-bit floats have no C++20 type: use the C API for them.
template <typename T>
constexpr bitrail_type_t type_of() {
  using Value = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Value, float>) {
    return BITRAIL_FLOAT32;
  } else if constexpr (std::is_same_v<Value, double>) {
    return BITRAIL_FLOAT64;
  } else if constexpr (std::is_same_v<Value, int32_t>) {
    return BITRAIL_INT32;
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    return BITRAIL_INT64;
  } else {
    static_assert(std::is_same_v<Value, uint8_t>, "no BitRail type for this element");
    return BITRAIL_UINT8;
  }
}

// Owner of a handle that Destroy ends.
template <typename Handle, bitrail_status_t (*Destroy)(Handle)>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) noexcept : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { reset(); }

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  void reset() noexcept {
    if (handle_ != nullptr) Destroy(std::exchange(handle_, nullptr));
  }

 private:
  Handle handle_ = nullptr;
};

// An asynchronous call under way. Its buffers must outlive it; the destructor waits.
class Request {
 public:
  Request() = default;
  explicit Request(bitrail_request_t handle) noexcept : handle_(handle) {}
  Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Request& operator=(Request&& other) noexcept {
    if (this != &other) {
      finish();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() { finish(); }

  // True once complete; throws if the call failed.
  bool test() {
    if (handle_ == nullptr) return true;
    const bitrail_status_t status = bitrail_test(&handle_);
    if (status == BITRAIL_IN_PROGRESS) return false;
    check(status);
    return true;
  }
  void wait() {
    if (handle_ != nullptr) check(bitrail_wait(&handle_));
  }

 private:
  void finish() noexcept {
    if (handle_ != nullptr) bitrail_wait(&handle_);
  }
  bitrail_request_t handle_ = nullptr;
};

inline bitrail_comm_options_t comm_options() {
  bitrail_comm_options_t options = {};
  options.struct_size = sizeof options;
  options.rank = options.world_size = -1;
  return options;
}

// A rank's membership in a job.
class Communicator {
 public:
  // From the launcher and the environment.
  Communicator() { create(nullptr); }
  explicit Communicator(const bitrail_comm_options_t& options) { create(&options); }

  bitrail_comm_t get() const noexcept { return owner_.get(); }
  int rank() const noexcept { return bitrail_comm_rank(get()); }
  int world_size() const noexcept { return bitrail_comm_world_size(get()); }
  std::string transport() const { return bitrail_comm_transport(get()); }
  std::string launcher() const { return bitrail_comm_launcher(get()); }
  void abort(const std::string& reason) { check(bitrail_comm_abort(get(), reason.c_str())); }
  bitrail_counters_t counters() const {
    bitrail_counters_t counters = {};
    counters.struct_size = sizeof counters;
    check(bitrail_comm_counters(get(), &counters));
    return counters;
  }

  // Synchronous; the spans' sizes are checked against each other before anything is sent.
  template <typename T>
  void allreduce(std::span<const T> send, std::span<T> recv, bitrail_op_t op = BITRAIL_SUM) {
    same_size(send.size(), recv.size());
    check(
        bitrail_allreduce(get(), send.data(), recv.data(), send.size(), type_of<T>(), op, nullptr));
  }
  template <typename T>
  void allreduce(std::span<T> data, bitrail_op_t op = BITRAIL_SUM) {
    check(
        bitrail_allreduce(get(), data.data(), data.data(), data.size(), type_of<T>(), op, nullptr));
  }
  template <typename T>
  [[nodiscard]] Request allreduce_async(std::span<const T> send, std::span<T> recv,
                                        bitrail_op_t op = BITRAIL_SUM) {
    same_size(send.size(), recv.size());
    bitrail_request_t request = nullptr;
    check(bitrail_allreduce(get(), send.data(), recv.data(), send.size(), type_of<T>(), op,
                            &request));
    return Request(request);
  }
  template <typename T>
  void allreduce_deterministic(std::span<const T> send, std::span<T> recv,
                               bitrail_op_t op = BITRAIL_SUM) {
    same_size(send.size(), recv.size());
    check(bitrail_allreduce_deterministic(get(), send.data(), recv.data(), send.size(),
                                          type_of<T>(), op, nullptr));
  }
  template <typename T>
  void reduce_scatter(std::span<const T> send, std::span<T> recv, bitrail_op_t op = BITRAIL_SUM) {
    same_size(send.size(), recv.size() * ranks());
    check(bitrail_reduce_scatter(get(), send.data(), recv.data(), recv.size(), type_of<T>(), op,
                                 nullptr));
  }
  template <typename T>
  void allgather(std::span<const T> send, std::span<T> recv) {
    same_size(send.size() * ranks(), recv.size());
    check(bitrail_allgather(get(), send.data(), recv.data(), send.size(), type_of<T>(), nullptr));
  }
  template <typename T>
  void broadcast(std::span<T> data, int root) {
    check(bitrail_broadcast(get(), data.data(), data.data(), data.size(), type_of<T>(), root,
                            nullptr));
  }
  template <typename T>
  void alltoall(std::span<const T> send, std::span<T> recv) {
    same_size(send.size(), recv.size());
    if (send.size() % ranks() != 0)
      throw Error(BITRAIL_ERR_INVALID_ARGUMENT, "all-to-all of a size that ranks do not divide");
    check(bitrail_alltoall(get(), send.data(), recv.data(), send.size() / ranks(), type_of<T>(),
                           nullptr));
  }
  void barrier() { check(bitrail_barrier(get(), nullptr)); }
  void send(std::span<const std::byte> data, int peer, uint64_t tag) {
    check(bitrail_send(get(), data.data(), data.size(), peer, tag, nullptr));
  }
  // Bytes that arrived.
  size_t recv(std::span<std::byte> data, int peer, uint64_t tag) {
    size_t received = 0;
    check(bitrail_recv(get(), data.data(), data.size(), peer, tag, &received, nullptr));
    return received;
  }

 private:
  void create(const bitrail_comm_options_t* options) {
    bitrail_comm_t handle = nullptr;
    check(bitrail_comm_create(&handle, options));
    owner_ = Owner<bitrail_comm_t, bitrail_comm_destroy>(handle);
  }
  size_t ranks() const noexcept { return static_cast<size_t>(world_size()); }
  static void same_size(size_t a, size_t b) {
    if (a != b)
      throw Error(BITRAIL_ERR_INVALID_ARGUMENT, "buffers of " + std::to_string(a) + " and " +
                                                    std::to_string(b) +
                                                    " elements where they have to agree");
  }
  Owner<bitrail_comm_t, bitrail_comm_destroy> owner_;
};

// Error feedback of the 1-bit collectives, and the collectives themselves. The communicator must
// outlive it.
class ErrorState {
 public:
  ErrorState(const Communicator& comm, std::span<const size_t> counts,
             bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT, bitrail_norm_t norm = BITRAIL_NORM_L2,
             size_t block = 0) {
    bitrail_onebit_layout_t layout = {};
    layout.struct_size = sizeof layout;
    layout.segments = counts.size();
    layout.counts = counts.data();
    layout.scale = scale;
    layout.norm = norm;
    layout.block = block;
    for (const size_t count : counts) elements_ += count;
    bitrail_error_state_t handle = nullptr;
    check(bitrail_error_state_create(&handle, comm.get(), &layout));
    owner_ = Owner<bitrail_error_state_t, bitrail_error_state_destroy>(handle);
  }

  bitrail_error_state_t get() const noexcept { return owner_.get(); }
  void reset() { check(bitrail_error_state_reset(get())); }
  std::vector<std::byte> save() const {
    std::vector<std::byte> data(bitrail_error_state_bytes(get()));
    check(bitrail_error_state_save(get(), data.data(), data.size()));
    return data;
  }
  void load(std::span<const std::byte> data) {
    check(bitrail_error_state_load(get(), data.data(), data.size()));
  }
  std::pair<double, double> norms() const {  // worker, server
    std::pair<double, double> norms;
    check(bitrail_error_state_norms(get(), &norms.first, &norms.second));
    return norms;
  }
  // The mean over ranks, 1 bit a value each way. Sizes are those of the layout.
  void allreduce(std::span<const float> send, std::span<float> recv) {
    if (send.size() != elements_ || recv.size() != elements_)
      throw Error(BITRAIL_ERR_INVALID_ARGUMENT,
                  "the layout has " + std::to_string(elements_) + " elements");
    bitrail_onebit_call_t call = {};
    call.struct_size = sizeof call;
    call.send = send.data();
    call.recv = recv.data();
    call.type = BITRAIL_FLOAT32;
    check(bitrail_onebit_allreduce(get(), &call, nullptr));
  }
  void allreduce(std::span<float> data) { allreduce(data, data); }

 private:
  size_t elements_ = 0;
  Owner<bitrail_error_state_t, bitrail_error_state_destroy> owner_;
};

inline bitrail_param_group_t param_group(double lr, double beta1 = 0.9, double beta2 = 0.999,
                                         double eps = 1e-8, double weight_decay = 0) {
  return {sizeof(bitrail_param_group_t), lr, beta1, beta2, eps, weight_decay, 0};
}

// An optimizer over flat parameters. Parameters and communicator must outlive it.
class Optimizer {
 public:
  struct Options {
    std::span<float> params;
    std::span<const bitrail_param_segment_t> segments;  // empty: one segment, group 0
    std::span<const bitrail_param_group_t> groups;
    int64_t freeze_step = 0;  // 1-bit optimizers only, as all that follows
    bool init_call = true;
    bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT;
    bitrail_norm_t norm = BITRAIL_NORM_L2;
    size_t block = 0;
    uint32_t compat = 0;  // BITRAIL_COMPAT_*
    bitrail_layout_t layout = BITRAIL_LAYOUT_DEFAULT;
    bitrail_padding_t padding = BITRAIL_PADDING_DEEPSPEED;
    bitrail_freeze_t freeze = BITRAIL_FREEZE_STEP;
    double freeze_share = 0;
    int64_t total_steps = 0;
    double freeze_threshold = 0;
    const bitrail_zero_one_t* zero_one = nullptr;
    const bitrail_lamb_t* lamb = nullptr;            // also for lamb()
    const bitrail_precision_t* precision = nullptr;  // all optimizers; float32 parameters
  };

  static Optimizer adam(const Options& options) {
    return Optimizer(bitrail_adam_create, nullptr, options);
  }
  static Optimizer lamb(const Options& options) {
    return Optimizer(bitrail_lamb_create, nullptr, options);
  }
  static Optimizer onebit_adam(const Communicator& comm, const Options& options) {
    return Optimizer(bitrail_onebit_adam_create, comm.get(), options);
  }
  static Optimizer zero_one_adam(const Communicator& comm, const Options& options) {
    return Optimizer(bitrail_zero_one_adam_create, comm.get(), options);
  }
  static Optimizer onebit_lamb(const Communicator& comm, const Options& options) {
    return Optimizer(bitrail_onebit_lamb_create, comm.get(), options);
  }

  bitrail_optimizer_t get() const noexcept { return owner_.get(); }
  // True: exchange gradients to their mean before step; false: give step this rank's own.
  bool wants_mean() const noexcept {
    return bitrail_optimizer_gradient(get()) == BITRAIL_GRADIENT_MEAN;
  }
  void step(std::span<const float> gradient) {
    if (gradient.size() != params_)
      throw Error(BITRAIL_ERR_INVALID_ARGUMENT, "a gradient of " + std::to_string(gradient.size()) +
                                                    " elements for " + std::to_string(params_) +
                                                    " parameters");
    check(bitrail_optimizer_step(get(), gradient.data()));
  }
  void set_lr(size_t group, double lr) { check(bitrail_optimizer_set_lr(get(), group, lr)); }
  int64_t step_count() const noexcept { return bitrail_optimizer_step_count(get()); }
  int64_t frozen_at() const noexcept { return bitrail_optimizer_frozen_at(get()); }
  double loss_scale() const noexcept { return bitrail_optimizer_loss_scale(get()); }
  int64_t skipped_steps() const noexcept { return bitrail_optimizer_skipped_steps(get()); }
  // Collective.
  void save(const std::string& directory) {
    check(bitrail_optimizer_save(get(), directory.c_str(), nullptr));
  }
  void load(const std::string& directory, bitrail_errors_t errors = BITRAIL_ERRORS_RESET) {
    const bitrail_checkpoint_options_t options = {sizeof options, errors};
    check(bitrail_optimizer_load(get(), directory.c_str(), &options));
  }
  bool frozen() const noexcept { return bitrail_optimizer_frozen(get()) != 0; }
  size_t state_bytes() const noexcept { return bitrail_optimizer_state_bytes(get()); }

 private:
  using Create = bitrail_status_t (*)(bitrail_optimizer_t*, bitrail_comm_t,
                                      const bitrail_optimizer_options_t*);
  Optimizer(Create create, bitrail_comm_t comm, const Options& options)
      : params_(options.params.size()) {
    const bitrail_param_segment_t whole = {options.params.size(), 0, nullptr};
    const std::span<const bitrail_param_segment_t> segments =
        options.segments.empty() ? std::span(&whole, 1) : options.segments;
    bitrail_optimizer_options_t c = {};
    c.struct_size = sizeof c;
    c.params = options.params.data();
    c.segments = segments.size();
    c.segment = segments.data();
    c.groups = options.groups.size();
    c.group = options.groups.data();
    c.freeze_step = options.freeze_step;
    c.init_call = options.init_call ? 1 : 0;
    c.scale = options.scale;
    c.norm = options.norm;
    c.block = options.block;
    c.compat = options.compat;
    c.layout = options.layout;
    c.padding = options.padding;
    c.freeze = options.freeze;
    c.freeze_share = options.freeze_share;
    c.total_steps = options.total_steps;
    c.freeze_threshold = options.freeze_threshold;
    c.zero_one = options.zero_one;
    c.lamb = options.lamb;
    c.precision = options.precision;
    bitrail_optimizer_t handle = nullptr;
    check(create(&handle, comm, &c));
    owner_ = Owner<bitrail_optimizer_t, bitrail_optimizer_destroy>(handle);
  }
  size_t params_;
  Owner<bitrail_optimizer_t, bitrail_optimizer_destroy> owner_;
};

}  // namespace bitrail
