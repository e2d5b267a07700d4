#include "ir/support/nearest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lathe {

namespace {

/// Returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last[b.size()];
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t longest = 80;  // longer words are unlikely typos, and the table is quadratic
  if (word.size() > longest) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const std::size_t length = std::max(word.size(), candidate.size());
    if (candidate.size() > longest) continue;
    // Wrong case is the most likely mistake.
    const std::size_t d = same_but_for_case(word, candidate) ? 0 : distance(word, candidate);
    if (d * 3 <= std::max<std::size_t>(length, 3) && (!best || d < best_distance)) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

std::string list_of(std::span<const std::string_view> names, std::size_t most) {
  if (names.empty()) return "none";
  if (names.size() <= most) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.first(most), ", "), names.size() - most);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const auto found = nearest(word, candidates);
  return found ? fmt::format("did you mean '{}'?", *found) : std::string();
}

std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string_view>& candidates,
                                 std::string_view start) {
  const std::string near = did_you_mean(word, candidates);
  return near.empty() ? fmt::format("{} {}", start, fmt::join(candidates, ", ")) : near;
}

}  // namespace lathe
