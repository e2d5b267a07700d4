#include "ir/tensor/diff/common_subsequence.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace lathe::ir {

namespace {

using CommonPositions = std::vector<std::pair<std::size_t, std::size_t>>;
using KeyList = std::span<const std::size_t>;

/// The trace takes memory quadratic in the number of edits: at most 32 MiB.
constexpr std::int64_t most_edits = 2800;

/// Walks back from the end of both lists through the furthest points of each number of edits.
CommonPositions walk_back(const std::vector<std::vector<std::int32_t>>& trace, KeyList a, KeyList b) {
  CommonPositions found;
  auto x = static_cast<std::int64_t>(a.size()), y = static_cast<std::int64_t>(b.size());
  for (auto edits = static_cast<std::int64_t>(trace.size()) - 1; edits >= 0; --edits) {
    std::int64_t from_x = 0, from_y = 0;
    if (edits > 0) {
      const std::vector<std::int32_t>& before = trace[static_cast<std::size_t>(edits - 1)];
      const auto at = [&](std::int64_t k) { return before[static_cast<std::size_t>((k + edits - 1) / 2)]; };
      const std::int64_t k = x - y;
      const bool down = k == -edits || (k != edits && at(k - 1) < at(k + 1));
      from_x = at(down ? k + 1 : k - 1);
      from_y = from_x - (down ? k + 1 : k - 1);
    }
    while (x > from_x && y > from_y) found.emplace_back(--x, --y);
    x = from_x;
    y = from_y;
  }
  std::ranges::reverse(found);
  return found;
}

/// Returns nothing if the lists differ in too many places.
std::optional<CommonPositions> shortest_edit(KeyList a, KeyList b) {
  const auto n = static_cast<std::int64_t>(a.size()), m = static_cast<std::int64_t>(b.size());
  std::vector<std::vector<std::int32_t>>
      trace;  // furthest x by number of edits, and by diagonal -edits, -edits + 2 ...
  for (std::int64_t edits = 0; edits <= std::min(n + m, most_edits); ++edits) {
    std::vector<std::int32_t> now(static_cast<std::size_t>(edits + 1));
    for (std::int64_t k = -edits; k <= edits; k += 2) {
      std::int64_t x = 0;
      if (edits > 0) {
        const auto at = [&](std::int64_t d) { return trace.back()[static_cast<std::size_t>((d + edits - 1) / 2)]; };
        const bool down = k == -edits || (k != edits && at(k - 1) < at(k + 1));
        x = down ? at(k + 1) : at(k - 1) + 1;
      }
      while (x < n && x - k < m && x >= 0 && x - k >= 0 &&
             a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)])
        ++x;
      now[static_cast<std::size_t>((k + edits) / 2)] = static_cast<std::int32_t>(x);
      if (x >= n && x - k >= m) {
        trace.push_back(std::move(now));
        return walk_back(trace, a, b);
      }
    }
    trace.push_back(std::move(now));
  }
  return std::nullopt;
}

/// Returns the keys that occur once in each list and are in the same order in both.
CommonPositions unique_keys(KeyList a, KeyList b) {
  struct Seen {
    int in_a = 0, in_b = 0;
    std::size_t at_b = 0;
  };
  std::unordered_map<std::size_t, Seen> seen;
  for (const std::size_t key : a) ++seen[key].in_a;
  for (std::size_t i = 0; i < b.size(); ++i) {
    Seen& now = seen[b[i]];
    ++now.in_b;
    now.at_b = i;
  }
  CommonPositions found;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const Seen& now = seen[a[i]]; now.in_a == 1 && now.in_b == 1)
      if (found.empty() || now.at_b > found.back().second) found.emplace_back(i, now.at_b);
  return found;
}

}  // namespace

CommonPositions common_subsequence(KeyList a, KeyList b) {
  std::size_t start = 0, end = 0;
  const std::size_t least = std::min(a.size(), b.size());
  while (start < least && a[start] == b[start]) ++start;
  while (end < least - start && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  const KeyList inner_a = a.subspan(start, a.size() - start - end),
                inner_b = b.subspan(start, b.size() - start - end);
  CommonPositions found;
  for (std::size_t i = 0; i < start; ++i) found.emplace_back(i, i);
  std::optional<CommonPositions> inner = shortest_edit(inner_a, inner_b);
  for (const auto& [x, y] : inner ? *inner : unique_keys(inner_a, inner_b)) found.emplace_back(start + x, start + y);
  for (std::size_t i = end; i > 0; --i) found.emplace_back(a.size() - i, b.size() - i);
  return found;
}

}  // namespace lathe::ir
