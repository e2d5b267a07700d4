#include <cmath>

#include "codegen/llvm/math/vector_math.h"

/// f32 functions computed in f64: sin, cos and pow.
namespace lathe::codegen {

using llvm::Value;

/// Arguments up to 2^22 are reduced by pi/2 in f64. If any lane is larger, all lanes use the C library.
Value* VectorMath::sine(Value* x, bool cosine) {
  const char* name = cosine ? "cos" : "sin";
  if (x->getType()->getScalarType()->isDoubleTy()) return call_library(name, {x});
  // This comparison is also true for infinities and NaN.
  Value* large = b_.CreateFCmpUGT(unary(llvm::Intrinsic::fabs, x), real(x, 0x1p22));
  if (x->getType()->isVectorTy()) large = b_.CreateOrReduce(large);
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* slow = llvm::BasicBlock::Create(b_.getContext(), "large", function);
  auto* fast = llvm::BasicBlock::Create(b_.getContext(), "reduced", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "after", function);
  b_.CreateCondBr(large, slow, fast);
  b_.SetInsertPoint(slow);
  Value* in_f64 = b_.CreateFPExt(x, with_scalar(x->getType(), b_.getDoubleTy()));
  Value* by_library = b_.CreateFPTrunc(call_library(name, {in_f64}), x->getType());
  slow = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(fast);
  Value* by_series = sine_reduced(x, cosine);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* result = b_.CreatePHI(x->getType(), 2);
  result->addIncoming(by_library, slow);
  result->addIncoming(by_series, fast);
  return result;
}

/// x = n pi/2 + r, |r| <= pi/4; Taylor series of sin r and cos r in f64, with an error far below f32's last place.
Value* VectorMath::sine_reduced(Value* x, bool cosine) {
  Value* in_f64 = b_.CreateFPExt(x, with_scalar(x->getType(), b_.getDoubleTy()));
  Value* n = unary(llvm::Intrinsic::roundeven, b_.CreateFMul(in_f64, real(in_f64, 0.63661977236758134308)));
  // pi/2 in two parts; n has at most 22 bits, the first part 24, so their product is exact without fma.
  Value* r = multiply_add(n, real(in_f64, -1.5707962512969971), in_f64);
  r = multiply_add(n, real(in_f64, -7.5497899548918822e-8), r);
  Value* z = b_.CreateFMul(r, r);
  Value* s = horner(z, {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6});
  s = multiply_add(b_.CreateFMul(z, r), s, r);
  Value* c = horner(z, {-1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5});
  c = multiply_add(z, c, real(in_f64, 1.0));
  Value* quadrant = b_.CreateFPToSI(n, with_scalar(x->getType(), b_.getInt32Ty()));
  if (cosine) quadrant = b_.CreateAdd(quadrant, bits(quadrant, 1));
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(quadrant, bits(quadrant, 1)), bits(quadrant, 0));
  Value* negative = b_.CreateICmpNE(b_.CreateAnd(quadrant, bits(quadrant, 2)), bits(quadrant, 0));
  Value* value = b_.CreateSelect(odd, c, s);
  return b_.CreateFPTrunc(b_.CreateSelect(negative, b_.CreateFNeg(value), value), x->getType());
}

/// log2 of f64 lanes that hold positive f32 numbers: k + 2/ln 2 * atanh(s), s = (m - 1) / (m + 1).
Value* VectorMath::log2_f64(Value* a) {
  Value* raw = b_.CreateBitCast(a, as_integer(a->getType()));
  constexpr std::int64_t sqrt_half = 0x3fe6a09e667f3bcd;
  Value* offset = b_.CreateSub(raw, bits(raw, sqrt_half));
  Value* in_i32 = b_.CreateTrunc(b_.CreateAShr(offset, bits(raw, 52)), with_scalar(a->getType(), b_.getInt32Ty()));
  Value* k = b_.CreateSIToFP(in_i32, a->getType());
  Value* mantissa = b_.CreateAdd(b_.CreateAnd(offset, bits(raw, 0xfffffffffffff)), bits(raw, sqrt_half));
  Value* m = b_.CreateBitCast(mantissa, a->getType());
  Value* s = b_.CreateFDiv(b_.CreateFSub(m, real(m, 1.0)), b_.CreateFAdd(m, real(m, 1.0)));
  Value* z = b_.CreateFMul(s, s);
  constexpr double scale = 2.8853900817779268147;
  Value* series =
      horner(z, {scale / 17, scale / 15, scale / 13, scale / 11, scale / 9, scale / 7, scale / 5, scale / 3, scale});
  return multiply_add(s, series, k);
}

/// 2^p for |p| <= 1000, in f64.
Value* VectorMath::exp2_f64(Value* p) {
  Value* n = unary(llvm::Intrinsic::roundeven, p);
  Value* t = b_.CreateFMul(b_.CreateFSub(p, n), real(p, 0.69314718055994530942));
  Value* e = horner(t, {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6,
                        0.5, 1.0, 1.0});
  // Through i32, because some CPUs have no 64-bit vector conversions.
  Value* whole = b_.CreateFPToSI(n, with_scalar(p->getType(), b_.getInt32Ty()));
  Value* exponent = b_.CreateSExt(whole, as_integer(p->getType()));
  Value* biased = b_.CreateAdd(exponent, bits(exponent, 1023));
  return b_.CreateFMul(e, b_.CreateBitCast(b_.CreateShl(biased, bits(biased, 52)), p->getType()));
}

/// x^y = 2^(y log2 |x|) in f64, then the special cases of the C standard.
Value* VectorMath::pow(Value* x, Value* y) {
  if (x->getType()->getScalarType()->isDoubleTy()) return call_library("pow", {x, y});
  llvm::Type* f64_type = with_scalar(x->getType(), b_.getDoubleTy());
  Value* in_f64 = b_.CreateFPExt(unary(llvm::Intrinsic::fabs, x), f64_type);
  Value* exponent = b_.CreateFPExt(y, f64_type);
  Value* logarithm = log2_f64(in_f64);
  logarithm = b_.CreateSelect(b_.CreateFCmpOEQ(in_f64, real(in_f64, 0.0)), real(in_f64, -INFINITY), logarithm);
  logarithm = b_.CreateSelect(b_.CreateFCmpOLT(in_f64, real(in_f64, INFINITY)), logarithm, in_f64);
  Value* p = b_.CreateFMul(exponent, logarithm);
  Value* is_nan = b_.CreateFCmpUNO(p, p);
  Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(p, real(p, 300.0)), real(p, 300.0), p);
  clamped = b_.CreateSelect(b_.CreateFCmpOLT(p, real(p, -300.0)), real(p, -300.0), clamped);
  clamped = b_.CreateSelect(is_nan, real(p, 0.0), clamped);
  Value* magnitude = b_.CreateFPTrunc(exp2_f64(clamped), x->getType());
  magnitude = b_.CreateSelect(is_nan, real(x, NAN), magnitude);

  Value* zero = real(x, 0.0);
  Value* one = real(x, 1.0);
  Value* infinite = real(x, INFINITY);
  const auto floor = [&](Value* v) { return unary(llvm::Intrinsic::floor, v); };
  Value* whole = b_.CreateFCmpOEQ(floor(y), y);
  Value* half = b_.CreateFMul(y, real(y, 0.5));
  Value* odd = b_.CreateAnd(whole, b_.CreateFCmpONE(floor(half), half));
  odd = b_.CreateAnd(odd, b_.CreateFCmpOLT(unary(llvm::Intrinsic::fabs, y), infinite));
  Value* sign_bit = b_.CreateICmpSLT(b_.CreateBitCast(x, as_integer(x->getType())),
                                     llvm::Constant::getNullValue(as_integer(x->getType())));
  Value* result = b_.CreateSelect(b_.CreateAnd(odd, sign_bit), b_.CreateFNeg(magnitude), magnitude);
  Value* negative = b_.CreateAnd(b_.CreateFCmpOLT(x, zero), b_.CreateFCmpOGT(x, real(x, -INFINITY)));
  result = b_.CreateSelect(b_.CreateAnd(negative, b_.CreateFCmpONE(floor(y), y)), real(x, NAN), result);
  Value* to_infinity = b_.CreateAnd(b_.CreateFCmpOEQ(unary(llvm::Intrinsic::fabs, x), one),
                                    b_.CreateFCmpOEQ(unary(llvm::Intrinsic::fabs, y), infinite));
  Value* is_one = b_.CreateOr(b_.CreateFCmpOEQ(x, one), b_.CreateFCmpOEQ(y, zero));
  return b_.CreateSelect(b_.CreateOr(to_infinity, is_one), one, result);
}

}  // namespace lathe::codegen
