#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/math/vector_math.h"
#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// Emits the scalar ops and casts of the kernel IR for any number of lanes. boolean is i1; bf16 and f16 are i16 bit
/// patterns.
class ScalarOps {
 public:
  ScalarOps(llvm::IRBuilder<>& builder, const TargetCpu& target)
      : b_(builder), target_(target), math_(builder, target) {}

  llvm::Type* type(DType dtype, int lanes = 1);
  llvm::Constant* constant(const kernel::Instruction& in);
  /// Emits any op except cast; `dtype` is that of the last operand.
  llvm::Value* apply(ScalarOp op, DType dtype, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* cast(llvm::Value* value, DType from, DType to);
  llvm::Value* reduce(ScalarOp op, DType dtype, llvm::Value* vector);
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) { return math_.fma(a, b, c); }
  /// Flushes a subnormal f32 to the zero of its sign.
  llvm::Value* flushed(llvm::Value* value);
  /// Returns `scalar` with the number of lanes of `shape`.
  llvm::Type* like(llvm::Value* shape, llvm::Type* scalar);
  const TargetCpu& target() const { return target_; }

 private:
  llvm::Value* on_floats(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* on_integers(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(ScalarOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* shift(ScalarOp op, llvm::Value* a, llvm::Value* amount);
  llvm::Value* min_max(llvm::CmpInst::Predicate better, llvm::Value* a, llvm::Value* b);
  llvm::Value* halve(llvm::Value* vector, llvm::function_ref<llvm::Value*(llvm::Value*, llvm::Value*)> combine);
  llvm::Value* to_float(llvm::Value* value, DType from, DType to);
  llvm::Value* f64_to_odd(llvm::Value* value);
  llvm::Value* i64_to_odd(llvm::Value* value);
  llvm::Value* to_integer(llvm::Value* value, llvm::Type* target);
  llvm::Value* saturated(llvm::Value* value, DType to);
  llvm::Value* widen(llvm::Value* value, DType from);
  llvm::Value* narrow_bf16(llvm::Value* value);
  llvm::Value* narrow_f16(llvm::Value* value);
  llvm::Value* widen_f16(llvm::Value* value);

  llvm::IRBuilder<>& b_;
  const TargetCpu& target_;
  VectorMath math_;
};

}  // namespace lathe::codegen
