#include "tools/stop_signals.h"

#include <cstdlib>

namespace lathe::tools {

namespace {

// A signal handler can only reach a global.
volatile std::sig_atomic_t first_signal = 0;

void on_signal(int signal) {
  if (first_signal != 0 && signal == SIGINT) std::_Exit(128 + signal);
  if (first_signal == 0) first_signal = signal;
}

}  // namespace

StopSignals::StopSignals() : taken_{{{.signal = SIGINT}, {.signal = SIGTERM}, {.signal = SIGHUP}}} {
  first_signal = 0;
  for (Taken& taken : taken_) {
    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(taken.signal, nullptr, &taken.before);
    if (taken.before.sa_handler != SIG_IGN) ::sigaction(taken.signal, &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (const Taken& taken : taken_) ::sigaction(taken.signal, &taken.before, nullptr);
}

int StopSignals::received() { return first_signal; }

}  // namespace lathe::tools
