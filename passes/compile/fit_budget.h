#pragma once

#include "passes/compile/compilation.h"

namespace lathe {

/// Makes a prepared graph fit `request.lower.memory` (the stage "rematerialize"). Recomputes values just before late
/// readers instead of keeping them during the peak. Sets `graph`, `recomputed` and `recomputed_kinds`, and adds the
/// kernels of its attempts to `pool`.
///
/// Copies values by kind (one op at one source line, in all layers). The kind that frees the most bytes per
/// recomputed work is first; elementwise values, norms and views precede matmuls. After each kind the whole program
/// and its memory are planned again. A kind is dropped if the peak rises. The order of attempts does not depend on
/// the budget, which only decides when to stop, so a smaller budget never needs more memory. Results are
/// bit-identical to those without a budget. Throws UserError [memory_budget] with the smallest size reached, and
/// [memory_dims] for an unbound dim.
void fit_budget(Compilation& now);

/// The result of a search for a graph within a budget.
struct BudgetFit {
  bool fits = false;
  std::int64_t bytes = 0;  ///< of the whole program: the smallest size reached if it does not fit
};
/// Same decisions as fit_budget(), without changing the graph. Throws UserError [memory_dims].
BudgetFit try_budget(const Compilation& now);

/// Throws UserError [memory_dims] unless the budget of the request has a size for every dim of the graph.
void require_budget_sizes(const Compilation& now);

}  // namespace lathe
