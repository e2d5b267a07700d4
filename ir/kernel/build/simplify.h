#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::kernel {

/// Simplifies one instruction, exactly, before it is appended. Folds constants and removes neutral and absorbing
/// elements. Merges (x + c1) + c2 and (x * c1) * c2 of integers into one op. Computes conditions that are the same in
/// every lane once.
struct Simplifier {
  Builder& builder;
  /// Returns an existing value equal to the instruction, or `none`; may rewrite the instruction to a simpler one.
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
