#pragma once

#include <functional>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

bool is_exponential(const ir::Node& node);

/// The exponentials that a sum adds up, each times a factor: those that its operand is, or is linear in by the ops
/// that it is written in. A softmax has such a sum, and so has its gradient; a sigmoid divides by its exponentials
/// and adds up none.
std::vector<ir::ValueId> exponentials_in_sum(const ir::Graph& graph, ir::ValueId sum);

/// Whether two products multiply the same values: what went around processes, and goes around again, is the same.
bool are_same_product(const ir::Graph& graph, ir::ValueId a, ir::ValueId b);

/// Whether a value is the sum of exp(a - max of a) along the dims of the maximum, as it is or kept as zero_masked has
/// it (ir/ops/softmax_floors.h).
bool is_softmax_sum(const ir::Graph& graph, ir::ValueId id);

/// Whether a value is made, by ops element by element, from a sum of exponentials of products that `are_scores`: the
/// largest may have been subtracted.
bool comes_from_softmax_sum(const ir::Graph& graph, ir::ValueId value,
                            const std::function<bool(ir::ValueId product)>& are_scores);

}  // namespace lathe
