#pragma once

#include <optional>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// Softmax weights are exponentials divided by their sum. A matmul that sums weights over the columns of a row can
/// divide its result instead: once per row instead of once per column.
struct SoftmaxDivisor {
  int value;    ///< the instruction to sum instead of the weight
  int divisor;  ///< the row value that divides the sum
};

/// A softmax with `zero_masked` clamps its maximum and its sum from below (ir/ops/softmax_floors.h). Returns the
/// clamped value if `i` is such a clamp, otherwise `i`.
int without_least_maximum(const ElementwiseProgram& program, int i);
int without_least_sum(const ElementwiseProgram& program, int i);

/// Removes the division from `result` if it is exp(a - max of a) / divisor, optionally times other factors. Each term
/// is then at most 1 in absolute value before scaling. The sum of undivided values overflows earlier than their
/// quotient: when their absolute values reach the largest number divided by the number of columns. May add
/// instructions to the program. `columns`: one bit per domain dim that is a column. `low_precision`: also for bf16
/// and f16, and for values converted to them; these are rounded after every op, so the order of ops changes the
/// result.
std::optional<SoftmaxDivisor> take_out_divisor(ElementwiseProgram& program, int result, std::uint64_t columns,
                                               bool low_precision = false);

/// Returns whether an instruction is exp(a - max of a) divided by the sum of these exponentials, in f32 or bf16. Then
/// the dividend is in [0, 1], and the divisor is finite and at least 1 because the maximum is one of the terms. A
/// fully masked row with `zero_masked` has 0 and 1/2 instead. Either value may be NaN.
bool is_softmax_weight(const ElementwiseProgram& program, const ElementwiseInstruction& instruction);

}  // namespace lathe
