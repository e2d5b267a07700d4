#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/op.h"

/// Helpers of shape_reason (explain.h).
namespace lathe::ir::detail {

inline constexpr std::string_view no_copy = "; no copy";

std::string joined(const std::vector<std::string>& items, std::string_view between);
/// Returns "a, b and c".
std::string listed(std::vector<std::string> items);

/// Describes how a shape becomes another of equal size in row-major order: "splits d_model=512 into h=8 x d_k=64".
std::string regrouping_text(const Shape& from, const Shape& to);

/// Explains a view's shape from its index map.
std::string view_text(const Graph& graph, const Node& node, const View& view);

}  // namespace lathe::ir::detail
