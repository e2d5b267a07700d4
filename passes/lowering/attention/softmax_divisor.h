#pragma once

#include <optional>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// The weights of a softmax are exponentials divided by their sum. What a product sums over the columns of a row can
/// as well be divided afterwards, once instead of once a column.
struct SoftmaxDivisor {
  int value;    ///< the instruction to sum instead
  int divisor;  ///< the row value that divides the sum
};

/// A softmax whose masked rows are zero keeps its maximum and its sum from falling below a number
/// (ir/ops/softmax_floors.h): what was kept so, where i is that; else i.
int without_least_maximum(const ElementwiseProgram& program, int i);
int without_least_sum(const ElementwiseProgram& program, int i);

/// Takes the division out of `result`, where that is exp(a - max of a) / divisor, perhaps times something: then every
/// term is at most 1 in magnitude before it is scaled. A sum of values overflows earlier than its quotient would:
/// where their magnitudes reach the largest number over the count of columns. Adds instructions to the program where
/// it must. `columns`: the bits of the domain dims that are columns. `low_precision`: of bf16 and f16 too, and of
/// what is converted to them, though these are rounded after every op, so that the order of ops shows.
std::optional<SoftmaxDivisor> take_out_divisor(ElementwiseProgram& program, int result, std::uint64_t columns,
                                               bool low_precision = false);

/// Whether an instruction is exp(a - max of a) over the sum of just these, of f32 or bf16. Then the dividend lies
/// between 0 and 1, and the divisor is finite and 1 at least, for the maximum is a term (of a masked row that is zero
/// they are 0 and 1/2); or either is NaN.
bool is_softmax_weight(const ElementwiseProgram& program, const ElementwiseInstruction& instruction);

}  // namespace lathe
