#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe::ir {

/// A loop to differentiate.
struct DifferentiatedLoop {
  const Node& node;  ///< any of its results
  std::span<const Value> operands;
  std::span<const std::optional<Value>> cotangents;  ///< one per result; nothing if no gradient arrives there
  std::span<const bool> needed;                      ///< by operand
};

/// Returns the gradients with respect to the operands, by operand; nothing where none is needed or arrives.
///
/// The gradient is a loop in the other direction. It carries the gradients of the carries and of the invariants,
/// takes those of the stacked outputs as sequences, and stacks those of the sequences. Its body is the gradient of
/// the body. It needs values of the forward iterations: the carries and the results of products, reductions and
/// other ops with kernels of their own are outputs of a second version of the forward loop, which merge_loops()
/// later joins with the first; elementwise values and views of them are computed again.
///
/// Gradients of invariants that are sums of products, such as those of weights, are not carried: the factors are
/// stacked, and one product after the loop also sums over the iterations.
std::vector<std::optional<Value>> loop_gradient(GraphBuilder& builder, const DifferentiatedLoop& loop);

}  // namespace lathe::ir
