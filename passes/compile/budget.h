#pragma once

#include "passes/compile/compile.h"

namespace lathe {

/// Makes a prepared graph fit `request.lower.memory` (the stage "rematerialize"): values are computed again just
/// before late readers instead of being kept over the peak. Sets `graph`, `recomputed` and `recomputed_kinds`, and
/// leaves the kernels of its attempts in `pool`.
///
/// Copies are made kind by kind (one op at one source line, in all layers), the kind that frees most bytes for its
/// work first: element-wise values, norms and views before products. After each kind the whole program and its memory
/// are planned again, and the kind is dropped if the peak rose. The order of the attempts does not depend on the
/// budget, which only says where to stop: a smaller budget never needs more memory. Results are the same bits as
/// without a budget. Throws UserError [memory_budget] with the least that was reached, and [memory_dims] for a dim
/// without a value.
void fit_budget(Compilation& now);

}  // namespace lathe
