#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// What shape rules have inferred, kept for nodes to come: one with the op, the attributes and the operands' types of
/// one before has its type, so that layers cost what one of them does. Names of dims count.
class InferredTypes {
 public:
  struct Inferred {
    OpRef op;
    Attributes given;                  ///< the attributes it was asked for with
    std::vector<TensorType> operands;  ///< types
    Attributes attrs;                  ///< in the order of the schema, defaults filled in
    TensorType type;
    std::vector<DimCheck> checks;  ///< that the rule asks for
    int checked_in = 0;            ///< the last of the graphs that was seen to have these checks
  };

  /// What is known; null where nothing is. The pointer is good until the next call of keep().
  Inferred* find(const Graph& graph, const Op& op, const Attributes& given, std::span<const ValueId> operands);
  /// Keeps what find() has just found unknown. The reference is good until the next call.
  Inferred& keep(const Graph& graph, std::span<const ValueId> operands, Inferred inferred);

  /// A number for the next graph.
  int next_graph() { return ++graphs_; }

 private:
  std::unordered_map<std::size_t, std::vector<Inferred>> by_hash_;
  std::size_t hash_ = 0;  // of what was last looked for
  Inferred other_;
  int graphs_ = 0;
};

}  // namespace lathe::ir
