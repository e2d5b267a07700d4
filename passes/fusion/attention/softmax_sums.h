#pragma once

#include <functional>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

bool is_exponential(const ir::Node& node);

/// Returns the exponentials that a sum adds up, each times a factor: its operand, or values in which its operand is
/// provably linear. A softmax and its gradient have such a sum. A sigmoid divides by its exponentials without adding
/// them up.
std::vector<ir::ValueId> exponentials_in_sum(const ir::Graph& graph, ir::ValueId sum);

/// Whether two matmuls multiply the same values. Values that were sent around the processes, once or again, are the
/// same.
bool are_same_product(const ir::Graph& graph, ir::ValueId a, ir::ValueId b);

/// Whether a value is the sum of exp(a - max of a) along the dims of the maximum, plain or with the floors of
/// zero_masked (ir/ops/softmax_floors.h).
bool is_softmax_sum(const ir::Graph& graph, ir::ValueId id);

/// Whether a value depends, through elementwise ops, on a sum of exponentials of matmuls that `are_scores`. The
/// maximum may have been subtracted.
bool comes_from_softmax_sum(const ir::Graph& graph, ir::ValueId value,
                            const std::function<bool(ir::ValueId product)>& are_scores);

}  // namespace lathe
