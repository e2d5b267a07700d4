#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/tensor/builder.h"
#include "ir/tensor/node_map.h"

namespace lathe::ir {

/// Maps the nodes of one graph into a builder, in order. Copied nodes keep their location and name. If the new
/// strides of a `view`'s operand do not allow the view, the operand is copied first.
///
///   Rebuilder to(builder, graph);
///   for (const ValueId id : all_values(graph)) to.set(id, to.copy(graph[id]));
///   to.close();                                   // outputs, updates, checks
class Rebuilder {
 public:
  Rebuilder(GraphBuilder& builder, const Graph& from);

  GraphBuilder& builder() const { return builder_; }
  const Graph& from() const { return from_; }

  bool has(ValueId old) const { return map_[old].valid(); }
  /// Returns the new value of an old one that is mapped already.
  Value operator[](ValueId old) const;
  /// Maps `old` to `now`. A value without a name takes that of the old one.
  void set(ValueId old, const Value& now);
  /// Returns the new values of a node's operands.
  std::vector<Value> operands(const Node& node) const;
  /// Copies the node, with its new operands.
  Value copy(const Node& node) const;
  /// Copies every node that is not mapped yet, even if no kept node needs it.
  void copy_rest();
  /// Declares outputs, updates and run-time checks in the builder.
  void close() const;

 private:
  GraphBuilder& builder_;
  const Graph& from_;
  NodeMap<ValueId> map_;                // by old node: the new one; invalid if there is none yet
  mutable std::vector<Value> scratch_;  // operands of the node that is being copied
};

/// Returns the replacement of `node` with its new operands, or nothing to keep the node. Called at the node's
/// location.
using Rewrite = std::function<std::optional<Value>(GraphBuilder&, const Node& node, std::span<const Value> operands)>;

/// Returns the graph with each node replaced by the result of `rewrite`, through a new builder (so equal nodes become
/// one). Arguments are always kept, in order. A replacement must have the dtype and shape of the node.
Graph rebuild(const Graph& graph, const Rewrite& rewrite);

}  // namespace lathe::ir
