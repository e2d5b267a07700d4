#include "runtime/ranks/rank_stalled.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace lathe {

UserError rank_stalled(int rank, double timeout, const StalledExchange& stalled, const std::string& what,
                       const std::string& axis, const Location& at, std::string_view op) {
  constexpr std::string_view label = "rank_stalled";
  constexpr std::string_view hint =
      "a process has stopped, or needs longer than the limit of --watchdog or RanksOptions::timeout";
  const std::string peers = fmt::format("{}", fmt::join(stalled.peers, ", "));
  const std::string text = fmt::format(
      "{}{} has made no progress for {} seconds: rank {} waits for {}", what, axis.empty() ? "" : " over " + axis,
      timeout, rank, axis.empty() ? "rank " + peers : fmt::format("position {} along {}", peers, axis));
  return op.empty() ? UserError(text, label, hint) : UserError(at, op, text, label, hint);
}

}  // namespace lathe
