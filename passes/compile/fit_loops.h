#pragma once

#include "passes/compile/compilation.h"

namespace lathe {

/// Makes loops of a prepared graph fit `request.lower.memory` (the stage "checkpoint-loops"), if recomputing other
/// values (fit_budget) is not enough. A forward loop then keeps its carries at regular intervals, and the loop that
/// reads its outputs, such as its gradient, runs the iterations between them again: checkpoint_loops()
/// (passes/remat/checkpoint_loops.h). Sets `graph` and `loops`, and adds the kernels of its attempts to `pool`.
///
/// The loop that frees the most bytes per recomputed work is first; the length of its segments is that of
/// choose_segments(). After each loop the whole program and its memory are planned again. A loop is left alone if
///   - all outputs that the other loop reads are also read by other ops, or are results;
///   - no length of a segment frees memory: checkpoints as large as what they replace, or a late-bound number of
///     iterations that nothing divides;
///   - a sum would be computed by another kind of kernel, which may change its bits;
///   - the program would not take less memory.
/// The order does not depend on the budget, which only decides when to stop, so a smaller budget never needs more
/// memory. Results are bit-identical to those without a budget. Throws UserError [memory_dims] for an unbound dim.
void fit_loops(Compilation& now);

}  // namespace lathe
