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

/// A value is named by the node that makes it: every node has one result. Ids are positions in Graph::nodes.
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
  /// The user's name for the value, printed as a comment; for inputs, parameters and states the name it is bound by.
  std::string name;
};

/// A relation between dims that no rule could decide when the op was built; it is checked when the dims are bound.
struct DimCheck {
  enum class Relation { equal, at_most };
  Dim left, right;
  Relation relation = Relation::equal;
  Location loc;
  std::string op;
  std::string label;    ///< the constraint's label, such as "matmul_inner"
  std::string message;  ///< what to say when it does not hold
  bool operator==(const DimCheck&) const = default;
};

struct Output {
  std::string name;
  ValueId value;
};

/// After a run, the state (or parameter) takes this value, in place.
struct Update {
  ValueId state;
  ValueId value;
};

/// A computation: SSA nodes in topological order. A graph is data; passes are functions from graph to graph.
struct Graph {
  std::string name;
  /// References to nodes stay good while a builder adds more.
  StableList<Node> nodes;
  std::vector<Output> outputs;
  std::vector<Update> updates;
  std::vector<DimCheck> checks;

  const Node& operator[](ValueId id) const { return nodes[static_cast<std::size_t>(id.index)]; }
  Node& operator[](ValueId id) { return nodes[static_cast<std::size_t>(id.index)]; }
  int size() const { return static_cast<int>(nodes.size()); }
  /// Ids of the input, parameter and state nodes, in the order of the signature.
  std::vector<ValueId> arguments() const;
  /// The argument with this name; invalid where there is none. Goes through all nodes.
  ValueId find_argument(std::string_view argument) const;
  /// What the graph gives: the values of its outputs, then those that its states take (repeats kept).
  std::vector<ValueId> results() const;
};

/// The ids 0 .. size-1, to go through.
class ValueRange {
 public:
  class Iterator {
   public:
    explicit Iterator(std::int32_t index) : id_{index} {}
    ValueId operator*() const { return id_; }
    Iterator& operator++() {
      ++id_.index;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    ValueId id_;
  };
  explicit ValueRange(std::int32_t size) : size_(size) {}
  Iterator begin() const { return Iterator(0); }
  Iterator end() const { return Iterator(size_); }

 private:
  std::int32_t size_;
};

/// The ids of the nodes that the graph has now.
inline ValueRange all_values(const Graph& graph) { return ValueRange(graph.size()); }

}  // namespace lathe::ir
