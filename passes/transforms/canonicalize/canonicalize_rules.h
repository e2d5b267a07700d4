#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/tensor/builder.h"
#include "ir/tensor/node_map.h"

/// The rules of the canonicalize pass.
namespace lathe::ir::canonical {

/// The input of a rule: a node and its operands, which are canonical already. `node.operands` belong to no graph; use
/// `operands`.
struct Context {
  GraphBuilder& builder;
  const Node& node;
  std::span<const Value> operands;
  const NodeMap<int>& use_counts;  ///< by value of the builder

  const Value& operand(int i) const { return operands[i]; }
  const Shape& shape() const { return node.type.shape; }
  /// Whether operand i alone has the result's shape.
  bool full_shape(int i) const { return operand(i).shape() == shape(); }
  /// Returns how often a value was read in the original graph, including by outputs and updates; 0 for values that
  /// rules created.
  int uses(const Value& value) const { return use_counts.contains(value.id()) ? use_counts[value.id()] : 0; }
};

/// apply() returns the replacement of the node, or nothing. A value equal to the node itself is treated as nothing.
struct Rule {
  std::string_view name;
  std::string_view what;  ///< before -> after
  std::optional<Value> (*apply)(const Context&);
};

std::span<const Rule> view_rules();
std::span<const Rule> algebra_rules();
std::span<const Rule> join_rules();
std::span<const Rule> contract_rules();

/// Returns operand i of a value's node.
Value operand_of(const Value& value, int i = 0);
/// Whether a value is computed by this op.
bool is(const Value& value, const Op& op);
/// Returns the number that every element of the value is, if the graph shows it.
std::optional<Number> number(const Value& value);

/// Returns, for transpose and permute, the operand's dims in the order of the result's; nothing for other ops.
std::optional<std::vector<int>> permutation(const Node& node);
/// Returns the value with its dims in this order: itself, a transpose or a permute.
Value permuted(const Value& value, const std::vector<int>& order);
/// The range of its operand's dim that a slice selects.
struct Range {
  int dim;
  Dim start, stop;
  std::int64_t step;
};
/// Returns the range of a slice whose operand has this shape.
Range range_of(const Node& slice, const Shape& shape);

/// The dim that a flip reverses, counted from 0.
int flipped_dim(const Node& flip);

/// Whether the op changes the shape but not the row-major order of elements: view, reshape, unsqueeze, squeeze.
bool keeps_order(const Op& op);

}  // namespace lathe::ir::canonical
