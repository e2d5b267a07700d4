#pragma once

#include <cstdint>

#include "ir/tensor/graph.h"

namespace lathe {

/// Lets matmuls of at most `most` rows read a state as it is before a row is appended, and the row from where it was
/// computed, so that the matmul need not wait for the append:
///
///     %u = update_rows(%cache, %at, %row), update %cache <- %u, %s = matmul(%q, transpose(%u))
///  -> %w = where(iota == %at, %row, %cache), %s = matmul(%q, transpose(%w)); %u is written later
///
/// One row is appended per position list, all of them known to be small, and only such matmuls read the updated
/// state, as their other operand, through views. The matmul then computes %w when it reads it. An index out of range
/// is still an error of %u. If a row is not the result of a matmul and its epilogue, nothing is changed: a kernel has
/// to compute it, such as a rotated key, and appends it in the same place.
ir::Graph read_before_append(ir::Graph graph, std::int64_t most);

}  // namespace lathe
