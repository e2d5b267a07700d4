#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/op.h"

/// The parts of shape_reason (explain.h).
namespace lathe::ir::detail {

inline constexpr std::string_view no_copy = "; nothing is copied";

std::string joined(const std::vector<std::string>& items, std::string_view between);
/// "a, b and c"
std::string listed(std::vector<std::string> items);

/// "d_model=512 splits into h=8 x d_k=64": how one shape becomes another of as many elements in row-major order.
std::string regrouping_text(const Shape& from, const Shape& to);

/// Why a view has its shape, from where its elements come.
std::string view_text(const Graph& graph, const Node& node, const View& view);

}  // namespace lathe::ir::detail
