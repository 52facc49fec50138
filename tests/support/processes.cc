#include "tests/support/processes.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace bitrail::test {
namespace {

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

}  // namespace

Processes::Child Processes::fork_child(const std::function<int()>& body) {
  Child child;
  child.output = memfd_create("output", MFD_CLOEXEC);
  (void)std::fflush(nullptr);  // or the child prints it again
  child.pid = fork();
  if (child.pid != 0) return child;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)dup2(child.output, STDOUT_FILENO);
  (void)dup2(child.output, STDERR_FILENO);
  const int code = body();
  (void)std::fflush(nullptr);
  _exit(code);
}

Processes::Processes(int n, const std::function<int(int)>& fn) {
  for (int rank = 0; rank < n; rank++) {
    children_.push_back(fork_child([&fn, rank] { return fn(rank); }));
  }
}

int Processes::start(const std::vector<std::string>& command,
                     const std::vector<std::pair<std::string, std::string>>& environment) {
  children_.push_back(fork_child([&] {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    for (const auto& [name, value] : environment) (void)setenv(name.c_str(), value.c_str(), 1);
    (void)execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    return 127;
  }));
  return static_cast<int>(children_.size()) - 1;
}

Processes::~Processes() {
  for (Child& child : children_) {
    if (!child.ended && child.pid > 0) {
      (void)kill(child.pid, SIGKILL);
      (void)waitpid(child.pid, nullptr, 0);
    }
    if (child.output >= 0) (void)close(child.output);
  }
}

bool Processes::ended(Child* child) {
  int status = 0;
  if (!child->ended && waitpid(child->pid, &status, WNOHANG) == child->pid) {
    child->ended = true;
    child->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return child->ended;
}

void Processes::signal(int index, int number) {
  Child& child = children_[static_cast<size_t>(index)];
  if (!ended(&child)) (void)kill(child.pid, number);
}

Finished Processes::wait(int index, Deadline deadline) {
  Child& child = children_[static_cast<size_t>(index)];
  while (!ended(&child) && !deadline.passed()) nap();
  Finished finished;
  finished.in_time = child.ended;
  if (!child.ended) {
    (void)kill(child.pid, SIGKILL);
    while (!ended(&child)) nap();
  }
  finished.code = child.code;
  finished.output = output(index);
  return finished;
}

std::string Processes::output(int index) const {
  const int fd = children_[static_cast<size_t>(index)].output;
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while ((count = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

bool Processes::wait_for_output(int index, const std::string& text, Deadline deadline) const {
  while (output(index).find(text) == std::string::npos) {
    if (deadline.passed()) return false;
    nap();
  }
  return true;
}

}  // namespace bitrail::test
