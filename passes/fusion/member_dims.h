#pragma once

#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// The domain dim of each dim of a member and of its index space, as in FusionPlan; -1 if its size is 1.
struct MemberDims {
  std::vector<int> dims, space;
  bool operator==(const MemberDims&) const = default;
};

/// Returns dim i for dim i, and -1 for dims of size 1.
std::vector<int> identity_dims(const Shape& shape);
/// Returns the domain dims of a reduction's result: those of its operand that are not folded.
std::vector<int> result_dims(const ir::Graph& graph, const ir::Node& reduce, const std::vector<int>& operand_dims);
/// Returns the dims of a node whose index space has the dims of the domain, in order.
MemberDims own_dims(const ir::Graph& graph, const ir::Node& node);

}  // namespace lathe
