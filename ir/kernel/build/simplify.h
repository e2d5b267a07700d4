#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::kernel {

/// Exact simplification of one instruction before it is appended: constants fold, neutral and absorbing elements
/// vanish, (x + c1) + c2 and (x * c1) * c2 of integers become one op, and conditions that are the same in every lane
/// are computed once.
struct Simplifier {
  Builder& builder;
  /// An existing value equal to the instruction, or `none`; may rewrite the instruction to a simpler one.
  ValueId simplify(Instruction& in);

 private:
  const Instruction& at(ValueId id) const;
  bool is(ValueId id, std::int64_t integer) const;
  bool is_real(ValueId id, double real, bool negative_zero = false) const;
  ValueId integer(Type type, std::int64_t value);
  ValueId fold(const Instruction& in);
  ValueId scalar(Instruction& in);
  ValueId integer_identity(Instruction& in);
  ValueId float_identity(const Instruction& in);
  ValueId boolean_identity(const Instruction& in);
  ValueId reassociate(Instruction& in);
  ValueId uniform_comparison(const Instruction& in);
  ValueId uniform_condition(const Instruction& in);
  ValueId vector_op(Instruction& in);
};

}  // namespace lathe::kernel
