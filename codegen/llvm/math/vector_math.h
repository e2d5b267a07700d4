#pragma once

#include <initializer_list>

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/target_cpu.h"

namespace lathe::codegen {

/// Emits transcendental functions of scalars and vectors. f32 versions are straight-line vector code with the
/// accuracy stated in docs/kernel-ir.md; f64 versions call the C library lane by lane. All handle +-0, subnormals,
/// infinities and NaN like the C library.
class VectorMath {
 public:
  VectorMath(llvm::IRBuilder<>& builder, const TargetCpu& target) : b_(builder), target_(target) {}

  llvm::Value* exp(llvm::Value* x);
  llvm::Value* log(llvm::Value* x);
  llvm::Value* tanh(llvm::Value* x);
  llvm::Value* erf(llvm::Value* x);
  llvm::Value* sin(llvm::Value* x) { return sine(x, false); }
  llvm::Value* cos(llvm::Value* x) { return sine(x, true); }
  llvm::Value* pow(llvm::Value* x, llvm::Value* y);

  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);

 private:
  llvm::Constant* real(llvm::Value* like, double value);
  llvm::Constant* bits(llvm::Value* like, std::int64_t value);
  llvm::Type* as_integer(llvm::Type* type);
  llvm::Value* unary(llvm::Intrinsic::ID id, llvm::Value* x);
  llvm::Value* horner(llvm::Value* x, std::initializer_list<double> from_high_degree);
  llvm::Value* multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* copysign(llvm::Value* magnitude, llvm::Value* sign);
  llvm::Value* call_library(const char* name, llvm::ArrayRef<llvm::Value*> args);
  unsigned scaling_width(llvm::Type* type) const;
  llvm::Value* within(llvm::Value* r, double bound, unsigned width);
  llvm::Value* scale_by_floor(llvm::Value* x, llvm::Value* n, unsigned width);
  llvm::Value* scale_by_power(llvm::Value* x, llvm::Value* n);
  llvm::Value* sixteenth_power(llvm::Value* index);
  llvm::Value* load_lanes(llvm::Constant* table, llvm::Value* index);
  llvm::Value* in_parts(unsigned width, llvm::ArrayRef<llvm::Value*> args,
                        llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> compute);
  llvm::Value* sine(llvm::Value* x, bool cosine);
  llvm::Value* sine_reduced(llvm::Value* x, bool cosine);
  llvm::Value* log2_f64(llvm::Value* a);
  llvm::Value* exp2_f64(llvm::Value* p);
  llvm::Type* with_scalar(llvm::Type* shape, llvm::Type* scalar);

  llvm::IRBuilder<>& b_;
  const TargetCpu& target_;
};

}  // namespace lathe::codegen
