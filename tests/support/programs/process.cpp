#include "tests/support/programs/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace lathe::test {

namespace {

/// Exit status of a child that could not start the program; env(1) uses the same one.
constexpr int not_started = 125;

bool connect(int stream, const std::string& path) {
  if (path == "closed") {
    ::close(stream);
    return true;
  }
  const int file = ::open(path.c_str(), stream == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return false;
  const bool connected = file == stream || ::dup2(file, stream) == stream;
  if (file != stream) ::close(file);
  return connected;
}

/// Runs in the child. It must not allocate memory, because another thread of the parent may have held the allocator's
/// lock.
[[noreturn]] void become(const Command& command, char* const* words) {
  bool ready = ::chdir(command.folder.c_str()) == 0;
  // A test may ignore signals; the program must get the defaults, like in a shell.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  ready = ready && connect(STDIN_FILENO, command.in) && connect(STDOUT_FILENO, command.out) &&
          connect(STDERR_FILENO, command.err);
  for (const auto& [resource, most] : command.limits) {
    const rlimit limit{most, most};
    ready = ready && ::setrlimit(resource, &limit) == 0;
  }
  if (command.user && ::geteuid() == 0)
    ready = ready && ::setgroups(0, nullptr) == 0 && ::setgid(*command.user) == 0 && ::setuid(*command.user) == 0;
  if (ready) ::execv(words[0], words);
  ::_exit(not_started);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Ending ending_of(int status) {
  return WIFSIGNALED(status) ? Ending{.signal = WTERMSIG(status)} : Ending{.status = WEXITSTATUS(status)};
}

}  // namespace

std::string Ending::to_string() const {
  return signal != 0 ? fmt::format("signal {}", signal) : fmt::format("status {}", status);
}

Process::Process(const Command& command) {
  std::vector<std::string> words{"/usr/bin/env"};
  for (const auto& [name, value] : command.environment) words.push_back(name + "=" + value);
  words.insert(words.end(), command.words.begin(), command.words.end());
  const std::vector<char*> arguments = pointers(words);
  id_ = ::fork();
  if (id_ < 0) throw std::runtime_error("no process can be started");
  if (id_ == 0) become(command, arguments.data());
}

Process::~Process() {
  if (ending_) return;
  send(SIGKILL);
  wait();
}

void Process::send(int signal) const {
  if (!ending_) ::kill(id_, signal);
}

Ending Process::wait() {
  int status = 0;
  if (!ending_ && ::waitpid(id_, &status, 0) == id_) ending_ = ending_of(status);
  if (ending_ == Ending{.status = not_started}) throw std::runtime_error("the program could not be started");
  return ending_.value_or(Ending{});
}

std::optional<Ending> Process::wait_for(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (int status = 0; !ending_;) {
    if (::waitpid(id_, &status, WNOHANG) == id_) {
      ending_ = ending_of(status);
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return wait();
}

Ending run(const Command& command) { return Process(command).wait(); }

}  // namespace lathe::test
