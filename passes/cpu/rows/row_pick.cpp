#include "passes/cpu/rows/row_pick.h"

#include <limits>

namespace lathe::cpu {

using Kind = ElementwiseInstruction::Kind;

namespace {

/// Whether an instruction is the column's number itself, in any integer type.
bool is_column(const ElementwiseProgram& program, int instruction, int inner) {
  while (is_scalar(program[instruction], ScalarOp::cast) && is_integer(program[instruction].dtype))
    instruction = program[instruction].args[0];
  const ElementwiseInstruction& i = program[instruction];
  if (i.kind != Kind::index || !i.form.offset.is(0)) return false;
  for (std::size_t d = 0; d < i.form.coefficients.size(); ++d)
    if (!i.form.coefficients[d].is(static_cast<int>(d) == inner ? 1 : 0)) return false;
  return !i.form.coefficients.empty();
}

bool is_identity(const ElementwiseInstruction& i, ScalarOp op) {
  if (i.kind != Kind::constant || !is_float(i.dtype)) return false;
  if (op == ScalarOp::add) return i.value == 0;
  return op == ScalarOp::max && i.value == -std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<RowPick> row_pick(const ElementwiseProgram& program, int instruction, int inner) {
  const ElementwiseInstruction& reduce = program[instruction];
  const ElementwiseInstruction& chosen = program[reduce.args[0]];
  if (reduce.kind != Kind::reduce || !is_scalar(chosen, ScalarOp::select)) return std::nullopt;
  const ElementwiseInstruction& condition = program[chosen.args[0]];
  if (!is_scalar(condition, ScalarOp::eq) || !is_identity(program[chosen.args[2]], reduce.op)) return std::nullopt;
  for (const std::size_t side : {0, 1}) {
    const int column = condition.args[1 - side];
    const bool varies = (program.depends[column] >> inner & 1) != 0;
    if (is_column(program, condition.args[side], inner) && !varies) return RowPick{column, chosen.args[1]};
  }
  return std::nullopt;
}

}  // namespace lathe::cpu
