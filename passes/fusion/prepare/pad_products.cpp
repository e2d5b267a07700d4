#include "passes/fusion/prepare/pad_products.h"

#include <algorithm>
#include <set>

#include "ir/kernel/machine/async_copy.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/fusion/affine.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::int64_t chunk = kernel::async_copy_bytes / 2;  // elements that are copied at once

std::int64_t padding(std::int64_t size) { return (chunk - size % chunk) % chunk; }

bool is_16_bits(const Node& node) { return node.type.dtype == bf16 || node.type.dtype == f16; }

/// Whether a value is an argument of the graph, as it is or rounded.
bool is_argument(const Graph& graph, ValueId id) {
  while (!graph[id].op->as<Argument>()) {
    if (!is_alias(graph[id]) && graph[id].op != &ops::cast) return false;
    id = graph[id].operands[0];
  }
  return true;
}

Value padded(const Value& operand, const std::string& labels, const std::set<char>& odd) {
  Value value = operand;
  for (int d = 0; d < static_cast<int>(labels.size()); ++d)
    if (odd.contains(labels[static_cast<std::size_t>(d)]))
      value = pad(value, d, 0, padding(*operand.type().shape[d].value()));
  return value;
}

class Padding {
 public:
  Padding(const Graph& graph, const GpuProductSizes& sizes)
      : graph_(graph), sizes_(sizes), padded_(graph.nodes.size(), false) {
    for (const Node& node : graph.nodes) {
      if (!node.op->as<Contraction>() || !is_16_bits(node)) continue;
      const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string &own = i == 0 ? roles.lhs : roles.rhs, &other = i == 0 ? roles.rhs : roles.lhs;
        const bool summed = !own.empty() && roles.contracted().find(own.back()) != std::string::npos;
        if (summed && is_odd(node.operands[i]) && is_argument(graph, node.operands[1 - i]) &&
            is_long_beside(node, roles, other, own.back()))
          padded_[at(node.operands[i])] = true;
      }
    }
  }

  bool any() const { return std::find(padded_.begin(), padded_.end(), true) != padded_.end(); }

  std::optional<Value> rewrite(const Node& node, std::span<const Value> operands) const {
    if (!node.op->as<Contraction>()) return std::nullopt;
    const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
    std::set<char> odd;
    for (std::size_t i = 0; i < 2; ++i)
      if (padded_[at(node.operands[i])]) odd.insert((i == 0 ? roles.lhs : roles.rhs).back());
    if (odd.empty()) return std::nullopt;
    Value result = contract(padded(operands[0], roles.lhs, odd), padded(operands[1], roles.rhs, odd),
                            roles.lhs + "," + roles.rhs + "->" + roles.out);
    for (int d = 0; d < node.type.rank(); ++d)
      if (odd.contains(roles.out[static_cast<std::size_t>(d)])) result = slice(result, d, 0, node.type.shape[d]);
    return result;
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

  /// Rows of a known odd length, long enough.
  bool is_odd(ValueId operand) const {
    const auto size = graph_[operand].type.shape[graph_[operand].type.rank() - 1].value();
    return size && *size > sizes_.unpadded_depth && padding(*size) > 0;
  }

  /// Whether an operand with these labels has many rows beside what is summed over.
  bool is_long_beside(const Node& product, const ContractionRoles& roles, std::string labels, char summed) const {
    std::erase(labels, summed);
    return roles.size_of(labels, graph_, product).value().value_or(sizes_.padded_rows) >= sizes_.padded_rows;
  }

  const Graph& graph_;
  const GpuProductSizes& sizes_;
  std::vector<bool> padded_;  ///< by node: an operand whose rows are
};

}  // namespace

Graph pad_products(const Graph& graph, const GpuProductSizes& sizes) {
  const Padding pads(graph, sizes);
  if (!pads.any()) return graph;
  return rebuild(graph, [&](GraphBuilder&, const Node& node, std::span<const Value> operands) {
    return pads.rewrite(node, operands);
  });
}

}  // namespace lathe
