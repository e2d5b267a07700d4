#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe {

/// A node over split dims: [N*h, S, T] becomes [N, h, S, T]. Without an op it shows its operand, with other
/// dims of size 1.
struct SplitNode {
  const ir::Op* op;
  ir::Attributes attrs;
  std::vector<Shape> operands;  ///< the shapes that its operands need
};

/// By dim of `whole`: the dims of `split` that it is the product of, in order; nothing where split is no such shape.
std::optional<std::vector<std::vector<Dim>>> split_parts(const Shape& whole, const Shape& split);

/// The shape that a value is wanted in; null where nothing is known of it.
using WantedShape = std::function<const Shape*(ir::ValueId)>;

/// How a node is computed so that its result has the shape `split` (its own, some dims split; those of size 1 may be
/// missing) and the same elements in row-major order. Nothing where it cannot be: a product splits no dim but those
/// that both operands and the result share; dims that are cut, joined, looked up or counted along stay whole, and so
/// do dims that are folded, unless the operand is wanted split there.
std::optional<SplitNode> split_node(const ir::Graph& graph, const ir::Node& node, const Shape& split,
                                    const WantedShape& wanted);

/// The shape of a node's result when it reads operand number `operand` with its dims split so; nothing where a
/// product sums over a dim that is split, or where it is reshaped.
std::optional<Shape> split_result(const ir::Graph& graph, const ir::Node& node, int operand, const Shape& split);

/// A value with other dims of size 1.
ir::Value with_ones(ir::Value value, const Shape& shape);
/// Whether the shapes differ by dims of size 1 alone.
bool same_but_for_ones(const Shape& a, const Shape& b);

}  // namespace lathe
