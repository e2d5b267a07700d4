#pragma once

#include <string>

#include "ir/support/error.h"
#include "runtime/ranks/communicator.h"

namespace lathe {

/// Returns UserError [rank_stalled] for a collective that exceeded its timeout: "the collective of all_reduce over
/// data has made no progress for 600 seconds: rank 1 waits for position 0 along data". `axis` is "" for a collective
/// among all ranks; `op` is "" if it does not belong to an op. `timeout` is the timeout in seconds.
UserError rank_stalled(int rank, double timeout, const StalledExchange& stalled, const std::string& what,
                       const std::string& axis, const Location& at = {}, std::string_view op = {});

}  // namespace lathe
