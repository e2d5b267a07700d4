#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/containers/inline_list.h"
#include "ir/support/containers/stable_list.h"
#include "ir/support/location.h"
#include "ir/support/shape.h"
#include "ir/tensor/op/attribute.h"
#include "ir/tensor/op/op_ref.h"

namespace lathe::ir {

/// A value is identified by its node, because every node has one result. Ids are positions in Graph::nodes.
struct ValueId {
  std::int32_t index = -1;
  bool valid() const { return index >= 0; }
  auto operator<=>(const ValueId&) const = default;
};

struct Node {
  OpRef op;
  InlineList<ValueId, 4> operands;
  Attributes attrs;
  TensorType type;
  Location loc;
  /// The user's name for the value, printed as a comment; for inputs, parameters and states the name that binds them.
  std::string name;
};

/// A relation between dims that could not be decided when the op was built; it is checked when the dims are bound.
struct DimCheck {
  enum class Relation { equal, at_most };
  Dim left, right;
  Relation relation = Relation::equal;
  Location loc;
  std::string op;
  std::string label;    ///< label of the constraint, such as "matmul_inner"
  std::string message;  ///< error message if it does not hold
  bool operator==(const DimCheck&) const = default;
};

struct Output {
  std::string name;
  ValueId value;
};

/// The state (or parameter) is overwritten with this value after a run.
struct Update {
  ValueId state;
  ValueId value;
};

/// A computation: SSA nodes in topological order. Passes are functions from graph to graph.
struct Graph {
  std::string name;
  /// References to nodes stay valid while a builder adds nodes.
  StableList<Node> nodes;
  std::vector<Output> outputs;
  std::vector<Update> updates;
  std::vector<DimCheck> checks;

  const Node& operator[](ValueId id) const { return nodes[id.index]; }
  Node& operator[](ValueId id) { return nodes[id.index]; }
  int size() const { return static_cast<int>(nodes.size()); }
  /// Returns the ids of the input, parameter and state nodes, in signature order.
  std::vector<ValueId> arguments() const;
  /// Returns the argument with this name, or an invalid id. Linear in the number of nodes.
  ValueId find_argument(std::string_view argument) const;
  /// Returns the values of the outputs, then those of the updates, including duplicates.
  std::vector<ValueId> results() const;
};

/// An iterable range of consecutive ids, ascending or descending.
template <std::int32_t step>
class ValueRange {
 public:
  class Iterator {
   public:
    explicit Iterator(std::int32_t index) : id_{index} {}
    ValueId operator*() const { return id_; }
    Iterator& operator++() {
      id_.index += step;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    ValueId id_;
  };
  ValueRange(std::int32_t first, std::int32_t end) : first_(first), end_(end) {}
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(end_); }

 private:
  std::int32_t first_, end_;
};

/// Returns the ids of the nodes that the graph has now: operands before their users.
inline ValueRange<1> all_values(const Graph& graph) { return {0, graph.size()}; }
/// Same in reverse: users before their operands.
inline ValueRange<-1> reversed_values(const Graph& graph) { return {graph.size() - 1, -1}; }

}  // namespace lathe::ir
