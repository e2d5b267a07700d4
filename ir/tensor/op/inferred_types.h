#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Cache of shape inference. A node with the same op, attributes and operand types (including names of dims) as an
/// earlier one has the same type, so repeated layers cost as much as one.
class InferredTypes {
 public:
  struct Inferred {
    OpRef op;
    Attributes given;                  ///< the attributes before defaults and sorting
    std::vector<TensorType> operands;  ///< operand types
    Attributes attrs;                  ///< in schema order, with defaults
    TensorType type;
    std::vector<DimCheck> checks;  ///< raised by the rule
    int checked_in = 0;            ///< the last graph known to contain these checks
  };

  /// Returns the cached result, or null. The pointer is valid until the next call of keep().
  Inferred* find(const Graph& graph, const Op& op, const Attributes& given, std::span<const ValueId> operands);
  /// Caches a result that find() has just missed. The reference is valid until the next call.
  Inferred& keep(const Graph& graph, std::span<const ValueId> operands, Inferred inferred);

  /// Returns a number for the next graph.
  int next_graph() { return ++graphs_; }

 private:
  std::unordered_map<std::size_t, std::vector<Inferred>> by_hash_;
  std::size_t hash_ = 0;  // of the last lookup
  Inferred other_;
  int graphs_ = 0;
};

}  // namespace lathe::ir
