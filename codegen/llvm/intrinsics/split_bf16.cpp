#include "ir/kernel/intrinsics/split_bf16.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/intrinsics/hooks.h"

namespace lathe::codegen {

using llvm::Value;

namespace {

/// Emits one instruction if the CPU has avx512bf16, otherwise the same computation by fma.
Value* multiply_pairs(ScalarOps& scalars, llvm::IRBuilder<>& code, Value* a, Value* b, Value* c) {
  const TargetCpu& target = scalars.target();
  const auto* sums = llvm::dyn_cast<llvm::FixedVectorType>(c->getType());
  const unsigned lanes = sums ? sums->getNumElements() : 1;
  if (target.has("avx512bf16") && (lanes == 16 || (target.has("avx512vl") && (lanes == 8 || lanes == 4)))) {
    const auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                    : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                 : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
    llvm::Type* pairs = llvm::FixedVectorType::get(code.getBFloatTy(), 2 * lanes);
    return code.CreateIntrinsic(id, {}, {c, code.CreateBitCast(a, pairs), code.CreateBitCast(b, pairs)});
  }
  const auto half = [&](Value* pairs, bool odd) {
    llvm::Type* i32 = scalars.like(c, code.getInt32Ty());
    Value* bits = code.CreateBitCast(pairs, i32);
    Value* high = odd ? code.CreateAnd(bits, llvm::ConstantInt::get(i32, 0xffff0000))
                      : code.CreateShl(bits, llvm::ConstantInt::get(i32, 16));
    return scalars.flushed(code.CreateBitCast(high, c->getType()));
  };
  // Flushes a result that is below the smallest normal number after rounding to 24 bits. A subnormal may have fewer
  // bits and round up to that number, so the comparison uses the result scaled by 2^24.
  constexpr double scale = 0x1p24, least = 0x1p-126;
  const auto real = [&](double value) { return llvm::ConstantFP::get(c->getType(), value); };
  const auto scaled = [&](Value* value) { return code.CreateFMul(value, real(scale)); };
  Value* sum = scalars.flushed(c);
  for (const bool odd : {true, false}) {
    Value *x = half(a, odd), *y = half(b, odd), *next = scalars.fma(x, y, sum),
          *large = scalars.fma(scaled(x), y, scaled(sum));
    Value* tiny = code.CreateFCmpOLT(code.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, large), real(scale * least));
    Value* zero = code.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, real(0), next);
    sum = code.CreateSelect(tiny, zero, next);
  }
  return sum;
}

/// Emits evaluate_bf16_term in the upper halves of the lanes. GVN shares subexpressions between terms.
Value* term_bits(ScalarOps& scalars, llvm::IRBuilder<>& code, Value* x, std::int64_t term) {
  llvm::Type* type = scalars.like(x, code.getInt32Ty());
  const auto integer = [&](std::uint32_t n) { return llvm::ConstantInt::get(type, n); };
  const auto real = [&](Value* bits) { return code.CreateBitCast(bits, x->getType()); };
  const auto nearest = [&](Value* value) {
    return code.CreateAnd(code.CreateAdd(code.CreateBitCast(value, type), integer(0x8000)), integer(0xffff0000));
  };
  Value* first = nearest(x);
  if (term == 0) return first;
  Value* remainder = code.CreateFSub(x, real(first));
  Value* second = nearest(remainder);
  return term == 1 ? second : code.CreateBitCast(code.CreateFSub(remainder, real(second)), type);
}

Value* terms_of(ScalarOps& scalars, llvm::IRBuilder<>& code, Value* a, Value* b, std::int64_t term) {
  Value *even = term_bits(scalars, code, a, term), *odd = term_bits(scalars, code, b, term);
  llvm::Type* type = even->getType();
  Value* pairs = code.CreateOr(code.CreateLShr(even, llvm::ConstantInt::get(type, 16)),
                               code.CreateAnd(odd, llvm::ConstantInt::get(type, 0xffff0000)));
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return code.CreateBitCast(
      pairs, llvm::FixedVectorType::get(code.getInt16Ty(), 2 * (vector ? vector->getNumElements() : 1)));
}

Value* emit_dot_pairs(const kernel::Instruction& in, KernelCode& kernel) {
  const auto s = kernel::DotPairs::of(in);
  return multiply_pairs(kernel.scalars(), kernel.builder(), kernel.value(s.a), kernel.value(s.b),
                        kernel.value(s.sum));
}

Value* emit_split_bf16(const kernel::Instruction& in, KernelCode& kernel) {
  const auto s = kernel::SplitBf16::of(in);
  return terms_of(kernel.scalars(), kernel.builder(), kernel.value(s.a), kernel.value(s.b), s.term);
}

constexpr IntrinsicHook pair_table[] = {{&kernel::dot_pairs_record, emit_dot_pairs},
                                        {&kernel::split_bf16_record, emit_split_bf16}};

}  // namespace

extern const std::span<const IntrinsicHook> pair_hooks;
constinit const std::span<const IntrinsicHook> pair_hooks{pair_table};

}  // namespace lathe::codegen
