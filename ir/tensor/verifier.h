#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Throws InternalError, naming the value and what is wrong, unless the graph is sound:
///   operands stand before their users, and are as many as the op takes;
///   attributes follow the op's schema, defaults filled in;
///   the type is the one that the shape rule infers, strides included, and every run-time check that the rule asks
///   for is among the graph's; arguments have names of their own and contiguous types; outputs have names of their
///   own and existing values; updates give a parameter or state, at most once each, a value of its dtype and shape.
/// The runner calls it after every pass. A parsed program needs no call: the builder refuses what this would.
void verify(const Graph& graph);

/// What shape rules have inferred, for graphs that are verified one after the other: a node with the op, the
/// attributes and the operands' types of one before it has its type, so that layers cost what one of them does.
class InferredTypes {
 public:
  /// What an op gives for operands of some types, and the run-time checks that it asks for. UserError of the rule.
  struct Inferred {
    const Op* op = nullptr;
    Attributes attrs;
    std::vector<TensorType> operands;
    TensorType type;
    std::vector<DimCheck> checks;
    int checked_in = 0;  ///< the last of the graphs that was seen to have these checks
  };
  /// The reference is good until the next call.
  Inferred& infer(const Graph& graph, const Node& node);
  /// A number for the next graph.
  int next_graph() { return ++graphs_; }

 private:
  std::unordered_map<std::size_t, std::vector<Inferred>> by_hash_;
  Inferred other_;
  int graphs_ = 0;
};

/// Why verify would throw, or nothing.
std::optional<std::string> find_defect(const Graph& graph);
std::optional<std::string> find_defect(const Graph& graph, InferredTypes& types);

}  // namespace lathe::ir
