#include "tools/bitrail/launch.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/common/clock.h"
#include "runtime/config/variables.h"
#include "tools/bitrail/bind.h"

namespace bitrail::tool {
namespace {

using bootstrap::UniqueFd;

constexpr int kFailed = 125, kTimedOut = 124;
constexpr int kKillMs = 2000;   // between SIGTERM and SIGKILL
constexpr int kDecideMs = 200;  // from a first failure to the verdict on who was first
constexpr int kDrainMs = 500;   // for output of processes that outlive their rank
constexpr size_t kMaxLine = 65'536;

// One of a rank's two outputs.
struct Stream {
  UniqueFd fd;
  int to = STDOUT_FILENO;
  std::string line;  // what came of it so far
};

struct Rank {
  int number = 0;
  pid_t pid = -1;  // also its process group; -1 once it ended
  std::array<Stream, 2> streams;
};

void say(const std::string& text) {
  const std::string line = "bitrail launch: " + text + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody reads any more
    text.remove_prefix(static_cast<size_t>(count));
  }
}

class Job {
 public:
  explicit Job(const LaunchOptions& options) : options_(options) {}
  int run();

 private:
  Status prepare();
  Status reserve_rendezvous();
  Status start(int number);
  [[noreturn]] void become(int number, int out, int err);
  void turn();
  void on_signal(const signalfd_siginfo& info);
  void reap();
  void on_exit(Rank* rank, int status);
  void decide();
  void relay(Rank* rank, Stream* stream);
  void end_rest(int signal);
  bool anybody_runs() const;
  bool anybody_talks() const;

  const LaunchOptions& options_;
  std::vector<Rank> ranks_;
  std::vector<cpu_set_t> shares_;  // of the processors, by rank; empty: not bound
  std::vector<std::pair<std::string, std::string>> environment_;
  UniqueFd signals_;
  // Bound for as long as the job lives, never listening: so no other socket of this host takes the
  // port, while rank 0 may listen there (both set SO_REUSEADDR).
  UniqueFd rendezvous_;
  sigset_t old_mask_{};
  Deadline timeout_, decide_, end_, kill_;  // job's time; SIGTERM to the rest; SIGKILL to the rest
  int code_ = 0;                            // first failure
  int culprit_ = -1, culprit_status_ = 0;   // who failed first, until decide()
  int stopped_by_ = 0;                      // signal that told us to stop
};

Status Job::reserve_rendezvous() {
  bootstrap::Address address;
  address.storage.ss_family = AF_INET;
  address.length = sizeof(sockaddr_in);
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rendezvous_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (!rendezvous_ ||
      setsockopt(rendezvous_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(rendezvous_.get(), address.raw(), address.length) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "no port for the rendezvous: {}", std::strerror(errno));
  }
  environment_.emplace_back("BITRAIL_RENDEZVOUS",
                            to_text(bootstrap::local_address(rendezvous_.get())));
  return {};
}

Status Job::prepare() {
  config::Settings settings;
  BITRAIL_TRY(config::load(&settings));
  std::string secret;
  BITRAIL_TRY(bootstrap::random_secret(&secret));
  environment_ = {{"BITRAIL_SECRET", secret},
                  {"BITRAIL_JOB_ID", fmt::format("launch-{}", getpid())}};
  const bool emulated = settings.link_mbps > 0 || settings.link_us > 0;
  environment_.emplace_back("BITRAIL_RANKS_PER_NODE",
                            emulated ? "1" : fmt::format("{}", options_.ranks));
  BITRAIL_TRY(reserve_rendezvous());
  if (options_.bind) {
    const Status bound = share_processors(options_.ranks, &shares_);
    if (!bound.ok()) say(bound.text() + "; ranks are not bound to processors");
  }
  sigset_t mask;
  sigemptyset(&mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&mask, signal);
  if (sigprocmask(SIG_BLOCK, &mask, &old_mask_) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "sigprocmask: {}", std::strerror(errno));
  }
  signals_.reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return failure(BITRAIL_ERR_SYSTEM, "signalfd: {}", std::strerror(errno));
  if (options_.timeout_s > 0) {
    timeout_ = Deadline::in_ms(static_cast<int64_t>(options_.timeout_s * 1000));
  }
  return {};
}

// In the child.
void Job::become(int number, int out, int err) {
  const pid_t launcher = getppid();
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kFailed);  // it died before the line above
  (void)setpgid(0, 0);  // a group of its own, so that its own children can be ended with it
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) (void)dup2(null, STDIN_FILENO);
  if (out >= 0) (void)dup2(out, STDOUT_FILENO);
  if (err >= 0) (void)dup2(err, STDERR_FILENO);
  (void)setenv("BITRAIL_RANK", fmt::format("{}", number).c_str(), 1);
  (void)setenv("BITRAIL_WORLD_SIZE", fmt::format("{}", options_.ranks).c_str(), 1);
  for (const auto& [name, value] : environment_) (void)setenv(name.c_str(), value.c_str(), 0);
  (void)sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  if (!shares_.empty()) {
    const cpu_set_t& share = shares_[static_cast<size_t>(number)];
    (void)sched_setaffinity(0, sizeof share, &share);  // unbound it runs too
  }
  std::vector<char*> arguments;
  for (const std::string& word : options_.program) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  (void)execvp(arguments[0], arguments.data());
  const int error = errno;
  say(fmt::format("cannot run '{}': {}", options_.program[0], std::strerror(error)));
  _exit(error == ENOENT ? 127 : 126);
}

Status Job::start(int number) {
  Rank rank;
  rank.number = number;
  std::array<UniqueFd, 2> ends;
  for (size_t i = 0; i < 2 && options_.prefix; i++) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
      return failure(BITRAIL_ERR_SYSTEM, "pipe: {}", std::strerror(errno));
    }
    rank.streams[i].fd.reset(fds[0]);
    rank.streams[i].to = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
    ends[i].reset(fds[1]);
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
  }
  rank.pid = fork();
  if (rank.pid < 0) return failure(BITRAIL_ERR_SYSTEM, "fork: {}", std::strerror(errno));
  if (rank.pid == 0) become(number, ends[0].get(), ends[1].get());
  (void)setpgid(rank.pid, rank.pid);  // here too: before anybody signals the group
  ranks_.push_back(std::move(rank));
  return {};
}

bool Job::anybody_runs() const {
  return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.pid > 0; });
}

bool Job::anybody_talks() const {
  return std::ranges::any_of(
      ranks_, [](const Rank& rank) { return rank.streams[0].fd || rank.streams[1].fd; });
}

void Job::end_rest(int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.pid > 0) (void)kill(-rank.pid, signal);
  }
}

// Whole lines, so that those of several ranks do not mix.
void Job::relay(Rank* rank, Stream* stream) {
  std::array<char, 16384> buffer;
  const ssize_t count = read(stream->fd.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const bool end = count <= 0;
  if (!end) stream->line.append(buffer.data(), static_cast<size_t>(count));
  std::string out;
  size_t at = 0;
  while (at < stream->line.size()) {
    const size_t newline = stream->line.find('\n', at);
    const bool whole = newline != std::string::npos;
    if (!whole && !end && stream->line.size() - at < kMaxLine) break;
    const size_t next = whole ? newline : stream->line.size();
    out += fmt::format("[{}] ", rank->number);
    out.append(stream->line, at, next - at);
    out += '\n';
    at = whole ? next + 1 : next;
  }
  stream->line.erase(0, at);
  write_all(stream->to, out);
  if (end) stream->fd.reset();
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Job::on_exit(Rank* rank, int status) {
  if (code_of(status) != 0) (void)kill(-rank->pid, SIGTERM);  // what it may have left behind
  rank->pid = -1;
  if (code_of(status) == 0 || code_ != 0) return;
  // The first to fail; but a rank killed at the same time is why the others failed, and the system
  // closes its sockets, which they see, before it reports its end.
  if (culprit_ < 0 || (WIFSIGNALED(status) && !WIFSIGNALED(culprit_status_))) {
    culprit_ = rank->number;
    culprit_status_ = status;
  }
  if (decide_.at_ns == INT64_MAX) decide_ = Deadline::in_ms(kDecideMs);
}

void Job::decide() {
  decide_ = {};
  if (culprit_ < 0 || code_ != 0) return;
  code_ = code_of(culprit_status_);
  if (stopped_by_ != 0) return;
  const int signal = WIFSIGNALED(culprit_status_) ? WTERMSIG(culprit_status_) : 0;
  const std::string how =
      signal != 0 ? fmt::format("was ended by signal {} ({})", signal, strsignal(signal))
                  : fmt::format("exited with {}", code_);
  say(fmt::format("rank {} {}{}", culprit_, how, anybody_runs() ? "; ending the others" : ""));
  end_ = Deadline::in_ms(static_cast<int64_t>(options_.grace_s * 1000));
}

void Job::reap() {
  for (Rank& rank : ranks_) {
    int status = 0;
    if (rank.pid > 0 && waitpid(rank.pid, &status, WNOHANG) == rank.pid) on_exit(&rank, status);
  }
}

void Job::on_signal(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD) return reap();
  if (stopped_by_ != 0) return end_rest(SIGKILL);
  stopped_by_ = signal;
  end_rest(signal);
  kill_ = Deadline::in_ms(static_cast<int64_t>(options_.grace_s * 1000));
}

void Job::turn() {
  std::vector<pollfd> polled = {{signals_.get(), POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    for (const Stream& stream : rank.streams) polled.push_back({stream.fd.get(), POLLIN, 0});
  }
  const int sleep_ms = std::min(
      {timeout_.left_ms(1000), decide_.left_ms(1000), end_.left_ms(1000), kill_.left_ms(1000)});
  (void)::poll(polled.data(), polled.size(), sleep_ms);
  size_t at = 1;
  for (Rank& rank : ranks_) {
    for (Stream& stream : rank.streams) {
      if (polled[at++].revents != 0) relay(&rank, &stream);
    }
  }
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) on_signal(info);
  if (decide_.passed()) decide();
  if (timeout_.passed() && code_ == 0) {
    say(fmt::format("{} s are over; ending the job", options_.timeout_s));
    code_ = kTimedOut;
    end_ = Deadline::in_ms(0);
  }
  if (end_.passed()) {
    end_rest(SIGTERM);
    end_ = {};
    kill_ = Deadline::in_ms(kKillMs);
  }
  if (kill_.passed()) {
    end_rest(SIGKILL);
    kill_ = Deadline::in_ms(kKillMs);
  }
}

int Job::run() {
  Status status = prepare();
  for (int number = 0; number < options_.ranks && status.ok(); number++) status = start(number);
  if (!status.ok()) {
    say(status.text());
    code_ = kFailed;
    end_ = Deadline::in_ms(0);
  }
  while (anybody_runs()) turn();
  decide();
  timeout_ = end_ = kill_ = {};
  const Deadline drained = Deadline::in_ms(kDrainMs);
  while (anybody_talks() && !drained.passed()) {
    end_ = drained;  // bounds the sleep
    turn();
  }
  for (Rank& rank : ranks_) {
    for (Stream& stream : rank.streams) {
      if (!stream.line.empty())
        write_all(stream.to, fmt::format("[{}] {}\n", rank.number, stream.line));
    }
  }
  if (signals_) (void)sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  return stopped_by_ != 0 ? 128 + stopped_by_ : code_;
}

constexpr const char* kUsage =
    "usage: bitrail launch -n RANKS [--no-prefix] [--no-bind] [--timeout SECONDS] [--] PROGRAM "
    "[ARGUMENTS]\n"
    "\n"
    "Starts RANKS processes of PROGRAM on this host as one job.\n"
    "  -n RANKS           how many\n"
    "  --no-prefix        do not put \"[rank] \" before each line of output\n"
    "  --no-bind          let ranks run on any processor; otherwise each gets its share of them, "
    "where\n"
    "                     there are as many as ranks\n"
    "  --timeout SECONDS  end the job after this time\n"
    "Exit code: 0, or that of the first rank that failed (128 + signal when it was killed).\n";

int refuse(const std::string& why) {
  std::fprintf(stderr, "bitrail launch: %s\n%s", why.c_str(), kUsage);
  return 2;
}

template <typename T>
bool parse(std::string_view text, T* value) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

int launch(const LaunchOptions& options) { return Job(options).run(); }

int launch_main(int argc, char** argv) {
  LaunchOptions options;
  options.ranks = 0;
  int at = 1;
  for (; at < argc; at++) {
    const std::string_view word = argv[at];
    const std::string_view next = at + 1 < argc ? argv[at + 1] : "";
    if (word == "-h" || word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (word == "--") {
      at++;
      break;
    }
    if (word == "--no-prefix") {
      options.prefix = false;
    } else if (word == "--no-bind") {
      options.bind = false;
    } else if (word == "-n" || word == "--ranks") {
      if (!parse(next, &options.ranks) || options.ranks < 1 || options.ranks > 4096) {
        return refuse(fmt::format("-n '{}' is not a number of ranks from 1 to 4096", next));
      }
      at++;
    } else if (word == "--timeout") {
      if (!parse(next, &options.timeout_s) || !(options.timeout_s > 0 && options.timeout_s < 1e7)) {
        return refuse(fmt::format("--timeout '{}' is not a number of seconds", next));
      }
      at++;
    } else if (word.starts_with('-')) {
      return refuse(fmt::format("there is no option '{}'", word));
    } else {
      break;
    }
  }
  options.program.assign(argv + at, argv + argc);
  if (options.ranks == 0) return refuse("-n RANKS is missing");
  if (options.program.empty()) return refuse("PROGRAM is missing");
  return launch(options);
}

}  // namespace bitrail::tool
