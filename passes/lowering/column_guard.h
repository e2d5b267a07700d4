#pragma once

#include "passes/lowering/attention_operand.h"
#include "passes/lowering/column_bounds.h"
#include "passes/lowering/strip_loops.h"

namespace lathe {

/// The largest magnitude of an operand's elements at positions first .. last; NaN if one of them is.
kernel::Value largest_magnitude(kernel::Builder& b, OperandLoader& loader, kernel::Value outer, kernel::Value first,
                                kernel::Value last, int lanes);

/// Whether every row of a strip keeps what the bounds lean on, `magnitude` being a bound of every score.
kernel::Value rows_bear_out(PointEmitter& emitter, const ColumnBounds& bounds, StripLoops::Rows& rows,
                            kernel::Value magnitude);

}  // namespace lathe
