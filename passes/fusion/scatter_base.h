#pragma once

#include <optional>
#include <vector>

#include "ir/tensor/analysis/users.h"
#include "passes/fusion/fusion.h"

namespace lathe {

/// For the addition of a scatter_add and a value that a region computes: that value, if the updates can be added to
/// it in place, so that no tensor of zeros is created and read again. All three have one shape and dtype, the
/// operands have no other readers, and the sum is not a result of the graph. The gradient of a table that is also a
/// weight (tied embeddings) is such a sum. `users` is by node, and so is `results`: whether the graph returns it.
struct ScatterBase {
  ir::ValueId scatter, base;
};
std::optional<ScatterBase> scatter_base(const ir::Graph& graph, const FusionPlan& plan, const ir::Users& users,
                                        const ir::NodeMap<bool>& results, ir::ValueId add);

}  // namespace lathe
