#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe::ir {

/// The sum over all iterations of a value that each iteration computes, taken apart into parts that are
/// computed after the loop from stacked values, and parts that the loop adds up. For example, the sum of x[t]^T dy[t]
/// is one product of all x and all dy. If x or dy is a stack of all iterations of an inner loop, the product is large
/// already, and the outer loop adds up the products: checkpoints would otherwise keep both factors for all
/// iterations.
struct IterationSum {
  enum class Form {
    carried,  ///< the loop adds up the value
    linear,   ///< the node's op, applied to the sum of its operand
    sum,      ///< of the sums of both operands
    product,  ///< a contraction that also sums over the iterations
    scaled,   ///< a contraction whose operand `fixed` does not change
    reduce,   ///< a sum over dims, which also sums over the iterations
  };
  Form form = Form::carried;
  ValueId value;                      ///< the node in the graph of the iteration
  int fixed = -1;                     ///< of `scaled`
  std::vector<IterationSum> of = {};  ///< of linear, sum and scaled
};

/// Takes apart the sum of `value`. Composites are expanded in `builder`, whose graph has the value. `is_invariant`:
/// whether a value is the same in all iterations.
IterationSum plan_iteration_sum(GraphBuilder& builder, ValueId value,
                                const std::function<bool(ValueId)>& is_invariant);

/// Calls f for each value that must be stacked, or added up by the loop.
void for_stacked(const IterationSum& sum, const Graph& graph, const std::function<void(ValueId)>& f);
void for_carried(const IterationSum& sum, const std::function<void(ValueId)>& f);

/// The values outside of the loop that a sum is computed from.
struct IterationValues {
  GraphBuilder& builder;
  const Graph& graph;                     ///< of the iteration
  std::function<Value(ValueId)> stacked;  ///< [trips, ...]
  std::function<Value(ValueId)> carried;  ///< sums that the loop has added up
  std::function<Value(ValueId)> invariant;
};
/// Returns the sum.
Value iteration_sum(const IterationSum& sum, const IterationValues& values);

}  // namespace lathe::ir
