#include "tools/train/stopped_run.h"

#include <csignal>

#include "ir/support/error.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"

namespace lathe::tools {

void end_stopped_run(std::int64_t step, const std::string& folder, bool speaks) {
  const int signal = StopSignals::received();
  if (!speaks) throw Stopped(signal != 0 ? signal : SIGTERM);
  try {
    print("Stopped after step {}. Checkpoint in {}; start the same command again to go on.\n", step, folder);
  } catch (const UserError&) {
    if (signal == 0) throw;  // a terminal that hung up takes no more words
  }
  throw Stopped(signal);
}

}  // namespace lathe::tools
