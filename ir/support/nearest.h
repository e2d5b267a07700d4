#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// Returns the candidate nearest to `word` by edit distance (swapping neighbours counts as one). Returns nothing if
/// more than a third of the longer word differs. The first of several equally near ones wins.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates);

/// Returns the first `most` names, such as "loss, logits and 30 more", or "none".
std::string list_of(std::span<const std::string_view> names, std::size_t most = 12);

/// Returns "did you mean 'softmax'?", or an empty string.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// Same, but lists all candidates if none is near: "the passes are dce, cse".
std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string_view>& candidates,
                                 std::string_view start);

}  // namespace lathe
