#pragma once

#include <string>

#include "ir/support/error.h"
#include "runtime/ranks/communicator.h"

namespace lathe {

/// UserError [rank_stalled], for an exchange in which nothing has come for as long as it may wait: "the exchange of
/// all_reduce over data has not moved for 600 seconds: rank 1 waits for position 0 along data". `axis` is "" for one
/// among all ranks, `op` for one that is of no op; `patience` in seconds.
UserError rank_stalled(int rank, double patience, const StalledExchange& stalled, const std::string& what,
                       const std::string& axis, const Location& at = {}, std::string_view op = {});

}  // namespace lathe
