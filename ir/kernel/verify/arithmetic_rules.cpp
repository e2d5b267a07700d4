#include "ir/kernel/verify/arithmetic_rules.h"

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/verify/rules.h"

namespace lathe::kernel {

void verify_constant(const Kernel& kernel, const Instruction& in) {
  const DType dtype = in.type.scalar;
  if (is_float(dtype))
    require(kernel, round_to(dtype, in.real) == in.real || in.real != in.real, "constant_range", "{} is not a {}",
            in.real, lathe::name(dtype));
  else
    require(kernel, wrap_to(dtype, in.integer) == in.integer, "constant_range", "{} is not a {}", in.integer,
            lathe::name(dtype));
}

void verify_reduction(const Kernel& kernel, const Instruction& in) {
  const Type vector = kernel.values[in.args[0]].type;
  want(kernel, in.type, {vector.scalar, 1}, "a reduction");
  const ScalarOp op = in.scalar_op;
  const bool logical = op == ScalarOp::logical_and || op == ScalarOp::logical_or;
  const bool arithmetic = op == ScalarOp::add || op == ScalarOp::mul || op == ScalarOp::min || op == ScalarOp::max;
  require(kernel, (logical || arithmetic) && is_defined(op, vector.scalar), "reduce_op", "a reduction by {} of {}",
          lathe::name(op), vector);
}

void verify_scalar(const Kernel& kernel, const Instruction& in) {
  const auto type_of = [&](std::size_t i) { return kernel.values[in.args[i]].type; };
  const Type operand = type_of(in.args.size() - 1);
  const bool is_storage = operand.scalar == bf16 || operand.scalar == f16 || is_byte(operand.scalar);
  require(kernel, is_defined(in.scalar_op, operand.scalar), is_storage ? "storage_type" : "scalar_type", "{} of {}",
          lathe::name(in.scalar_op), operand);
  std::size_t first = 0;
  if (in.scalar_op == ScalarOp::select) {
    want(kernel, type_of(0), {boolean, operand.lanes}, "the condition of select");
    first = 1;
  }
  for (std::size_t i = first; i < in.args.size(); ++i) want(kernel, type_of(i), operand, "an operand");
  const DType result = in.scalar_op == ScalarOp::cast ? in.type.scalar : result_dtype(in.scalar_op, operand.scalar);
  want(kernel, in.type, {result, operand.lanes}, "a result");
}

}  // namespace lathe::kernel
