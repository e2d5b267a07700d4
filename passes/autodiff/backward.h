#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/tensor/builder.h"

/// The sweep behind autodiff.h.
namespace lathe::ir {

/// Whether any gradient can flow through the node to its operands: its value is float or complex, and its op has a
/// rule or an expansion.
bool passes_gradient(const Node& node);

struct Cotangent {
  ValueId value;
  Value gradient;
};

/// Sweeps backward from `seeds` and returns, for each target, the sum of the gradients that arrive there. With
/// `stop_at`, the sweep does not go below these values: they are leaves.
std::vector<std::optional<Value>> backward(GraphBuilder& builder, std::span<const Cotangent> seeds,
                                           std::span<const ValueId> targets, std::span<const ValueId> stop_at = {});

}  // namespace lathe::ir
