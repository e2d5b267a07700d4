#pragma once

#include <functional>

#include "runtime/ranks/communicator.h"

namespace lathe {

/// Runs `body` once for each of so many ranks, each in a thread of this process, and returns when all have ended. The
/// body is given its rank and what makes its communicator, which copies memory within the process. Throws what the
/// first rank threw that failed by itself.
void run_ranks(int ranks, const std::function<void(int rank, const MakeCommunicator&)>& body);

}  // namespace lathe
