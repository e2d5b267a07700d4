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

/// A program to be started: what it is told, and what it finds around it.
struct Command {
  std::vector<std::string> words;                  ///< the program's path and its arguments
  std::filesystem::path folder = ".";              ///< it starts in
  std::map<std::string, std::string> environment;  ///< added to this process's own
  /// Files that its standard streams are; "closed" for none at all.
  std::string in = "/dev/null", out = "/dev/null", err = "/dev/null";
  std::vector<std::pair<__rlimit_resource, rlim_t>> limits;
  std::optional<uid_t> user;  ///< it runs as, where this process is root
};

/// How a process ended.
struct Ending {
  int status = 0;  ///< its exit status
  int signal = 0;  ///< that ended it; 0: none
  /// "status 1", "signal 9".
  std::string to_string() const;
  bool operator==(const Ending&) const = default;
};

/// A child process. One that still runs when the object goes is killed.
class Process {
 public:
  /// Throws std::runtime_error where no process can be started.
  explicit Process(const Command& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const;
  /// Waits for the end.
  Ending wait();
  /// The same for so long at most.
  std::optional<Ending> wait_for(std::chrono::milliseconds patience);

 private:
  pid_t id_ = -1;
  std::optional<Ending> ending_;
};

/// Runs a command to its end.
Ending run(const Command& command);

}  // namespace lathe::test
