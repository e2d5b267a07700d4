#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe::ir {

/// Maps the nodes of one graph into a builder, one after the other. Copied nodes keep location and name. A `view`
/// whose operand came out with other strides than before becomes a `reshape`, which means the same and is always
/// legal.
///
///   Rebuilder to(builder, graph);
///   for (const ValueId id : all_values(graph)) to.set(id, to.copy(graph[id]));
///   to.close();                                   // outputs, updates, checks
class Rebuilder {
 public:
  Rebuilder(GraphBuilder& builder, const Graph& from);

  GraphBuilder& builder() const { return builder_; }
  const Graph& from() const { return from_; }

  bool has(ValueId old) const { return map_[static_cast<std::size_t>(old.index)].valid(); }
  /// The new value of an old one that is mapped already.
  Value operator[](ValueId old) const;
  /// Says what stands for `old` from now on. A value without a name of its own takes the old one's.
  void set(ValueId old, const Value& now);
  /// The new values of a node's operands.
  std::vector<Value> operands(const Node& node) const;
  /// The node itself over its new operands.
  Value copy(const Node& node) const;
  /// Copies every node that is not mapped yet; those that nothing kept asks for as well.
  void copy_rest();
  /// Declares outputs, updates and run-time checks in the builder.
  void close() const;

 private:
  GraphBuilder& builder_;
  const Graph& from_;
  std::vector<ValueId> map_;            // by old node: in the builder; invalid where there is none yet
  mutable std::vector<Value> scratch_;  // operands of the node that is copied
};

/// What should stand for `node` over its new operands; nothing: the node itself. It runs at the node's location.
using Rewrite = std::function<std::optional<Value>(GraphBuilder&, const Node& node, std::span<const Value> operands)>;

/// The graph with each node replaced by what `rewrite` says, through a fresh builder (so equal nodes become one).
/// Arguments are always kept, in their order. A replacement has the dtype and shape of what it stands for.
Graph rebuild(const Graph& graph, const Rewrite& rewrite);

/// Adds all of `graph` to `builder`, its arguments bound to `arguments` (in the order of graph.arguments()); gives
/// the values of its outputs. Updates are not carried over.
std::vector<Value> inline_graph(GraphBuilder& builder, const Graph& graph, std::span<const Value> arguments);

}  // namespace lathe::ir
