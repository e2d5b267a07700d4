#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// The candidate that a person who wrote `word` most likely meant, by edit distance (a swap of neighbours counts
/// one); nothing where none is close (more than a third of the longer word differs). The first of equals wins.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "loss, logits and 30 more": some of the names, "none" where there are none.
std::string list_of(std::span<const std::string_view> names);

/// "did you mean 'softmax'?", or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

/// The same, or where none is close all candidates: "the passes are dce, cse".
std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string_view>& candidates,
                                 std::string_view start);

}  // namespace lathe
