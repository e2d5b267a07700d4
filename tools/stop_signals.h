#pragma once

#include <array>
#include <csignal>
#include <exception>

namespace lathe::tools {

/// Takes SIGINT (Ctrl-C), SIGTERM and SIGHUP over while it lives, so that a command can end its work well. A signal
/// that the process was told to ignore (nohup) stays ignored. Ctrl-C after any of them ends the process at once, with
/// status 130. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal that came; 0: none did.
  static int received();

 private:
  struct Taken {
    int signal = 0;
    struct sigaction before{};
  };
  std::array<Taken, 3> taken_;
};

/// Ends a command that a signal stopped, after its work is saved; SIGPIPE: whose standard output is a pipe that the
/// reader closed. Nothing is printed, and the exit status is 128 + signal.
class Stopped : public std::exception {
 public:
  explicit Stopped(int signal) : signal_(signal) {}
  int status() const { return 128 + signal_; }
  const char* what() const noexcept override { return "stopped by a signal"; }

 private:
  int signal_;
};

}  // namespace lathe::tools
