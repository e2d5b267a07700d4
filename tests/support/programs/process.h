#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lathe::test {

/// A program to start: its arguments and environment.
struct Command {
  std::vector<std::string> words;                  ///< path of the program and its arguments
  std::filesystem::path folder = ".";              ///< working directory
  std::map<std::string, std::string> environment;  ///< added to that of this process
  /// Files for its standard streams; "closed" for none at all.
  std::string in = "/dev/null", out = "/dev/null", err = "/dev/null";
  std::vector<std::pair<__rlimit_resource, rlim_t>> limits;
  std::optional<uid_t> user;  ///< user to run as, if this process is root
};

/// How a process ended.
struct Ending {
  int status = 0;  ///< its exit status
  int signal = 0;  ///< signal that terminated it; 0: none
  /// Returns "status 1" or "signal 9".
  std::string to_string() const;
  bool operator==(const Ending&) const = default;
};

/// A child process. The destructor kills it if it is still running.
class Process {
 public:
  /// Throws std::runtime_error if the process cannot be started.
  explicit Process(const Command& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const;
  /// Waits until it ends.
  Ending wait();
  /// Waits with a timeout.
  std::optional<Ending> wait_for(std::chrono::milliseconds timeout);

 private:
  pid_t id_ = -1;
  std::optional<Ending> ending_;
};

/// Runs a command and waits for its end.
Ending run(const Command& command);

}  // namespace lathe::test
