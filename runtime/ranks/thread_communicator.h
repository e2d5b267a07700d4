#pragma once

#include <functional>

#include "runtime/ranks/communicator.h"

namespace lathe {

/// Runs `body` on `ranks` ranks, each in a thread of this process, and returns when all have ended. `body` gets its
/// rank and a function that creates its communicator, which copies memory within the process. Rethrows the exception
/// of the first rank that failed by itself.
void run_ranks(int ranks, const std::function<void(int rank, const MakeCommunicator&)>& body);

}  // namespace lathe
