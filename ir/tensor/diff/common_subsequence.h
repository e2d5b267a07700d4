#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace lathe::ir {

/// Returns the positions of a longest common subsequence of two lists, as pairs (in a, in b) in order: Myers, "An
/// O(ND) difference algorithm" (1986). Lists that differ in more than a few thousand places share only the keys that
/// occur once in each, in order.
std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(std::span<const std::size_t> a,
                                                                    std::span<const std::size_t> b);

}  // namespace lathe::ir
