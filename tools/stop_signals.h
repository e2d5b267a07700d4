#pragma once

#include <array>
#include <csignal>
#include <exception>

namespace lathe::tools {

/// Handles SIGINT (Ctrl-C), SIGTERM and SIGHUP during its lifetime, so that a command can stop cleanly. Signals that
/// the process was started to ignore (nohup) stay ignored. Ctrl-C after any of these signals ends the process at once
/// with status 130. Only one instance may exist at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Returns the first signal received, or 0.
  static int received();

 private:
  struct Taken {
    int signal = 0;
    struct sigaction before{};
  };
  std::array<Taken, 3> taken_;
};

/// Ends a command that was stopped by a signal, after its work is saved. With SIGPIPE: ends a command whose standard
/// output is a pipe that the reader closed. Prints nothing; the exit status is 128 + signal.
class Stopped : public std::exception {
 public:
  explicit Stopped(int signal) : signal_(signal) {}
  int status() const { return 128 + signal_; }
  const char* what() const noexcept override { return "stopped by a signal"; }

 private:
  int signal_;
};

}  // namespace lathe::tools
