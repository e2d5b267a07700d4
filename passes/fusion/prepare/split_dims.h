#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe {

/// A node over split dims: [N*h, S, T] becomes [N, h, S, T]. Without an op it is its operand with other dims of size
/// 1.
struct SplitNode {
  const ir::Op* op;
  ir::Attributes attrs;
  std::vector<Shape> operands;  ///< the shapes that its operands need
};

/// Returns, by dim of `whole`, the dims of `split` whose product it is, in order; nothing if split is not such a
/// shape.
std::optional<std::vector<std::vector<Dim>>> split_parts(const Shape& whole, const Shape& split);

/// Returns the shape in which a value is needed; null if that is unknown.
using WantedShape = std::function<const Shape*(ir::ValueId)>;

/// Returns how a node is computed so that its result has the shape `split` and the same elements in row-major order.
/// `split` is its own shape with some dims split; dims of size 1 may be missing. Returns nothing if that is
/// impossible. A matmul splits only dims that both operands and the result share. Dims that are sliced, concatenated,
/// looked up or counted along stay whole, and so do folded dims, unless the operand is needed with them split.
std::optional<SplitNode> split_node(const ir::Graph& graph, const ir::Node& node, const Shape& split,
                                    const WantedShape& wanted);

/// Returns the shape of a node's result if it reads operand number `operand` in the shape `split`. Returns nothing
/// for a matmul that sums over a split dim, and if a split dim is reshaped.
std::optional<Shape> split_result(const ir::Graph& graph, const ir::Node& node, int operand, const Shape& split);

/// Returns a value with other dims of size 1.
ir::Value with_ones(ir::Value value, const Shape& shape);
/// Whether the shapes differ only by dims of size 1.
bool same_but_for_ones(const Shape& a, const Shape& b);

}  // namespace lathe
