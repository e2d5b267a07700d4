#include "codegen/llvm/math/scalar_ops.h"
#include "ir/support/error.h"

namespace lathe::codegen {

using llvm::Value;

/// Converts bf16 and f16 to f32; returns other values unchanged.
Value* ScalarOps::widen(Value* value, DType from) {
  if (from == f16) return widen_f16(value);
  if (from != bf16) return value;
  Value* wide = b_.CreateZExt(value, like(value, b_.getInt32Ty()));
  wide = b_.CreateShl(wide, llvm::ConstantInt::get(wide->getType(), 16));
  return b_.CreateBitCast(wide, like(value, b_.getFloatTy()));
}

/// Flushes a subnormal f32 to the zero of its sign.
Value* ScalarOps::flushed(Value* value) {
  Value* bits = b_.CreateBitCast(value, like(value, b_.getInt32Ty()));
  const auto integer = [&](std::int64_t n) { return llvm::ConstantInt::get(bits->getType(), n); };
  Value* tiny = b_.CreateICmpEQ(b_.CreateAnd(bits, integer(0x7f800000)), integer(0));
  Value* kept = b_.CreateSelect(tiny, b_.CreateAnd(bits, integer(0x80000000)), bits);
  return b_.CreateBitCast(kept, value->getType());
}

/// Rounds to nearest even on the bits. Unlike vcvtneps2bf16, keeps subnormals.
Value* ScalarOps::narrow_bf16(Value* value) {
  Value* bits = b_.CreateBitCast(value, like(value, b_.getInt32Ty()));
  const auto integer = [&](std::int64_t n) { return llvm::ConstantInt::get(bits->getType(), n); };
  Value* high = b_.CreateLShr(bits, integer(16));
  Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(b_.CreateAnd(high, integer(1)), integer(0x7fff)));
  rounded = b_.CreateLShr(rounded, integer(16));
  Value* quiet = b_.CreateOr(high, integer(0x40));
  Value* chosen = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded);
  return b_.CreateTrunc(chosen, like(value, b_.getInt16Ty()));
}

Value* ScalarOps::narrow_f16(Value* value) {
  llvm::Type* i16 = like(value, b_.getInt16Ty());
  if (target_.has("f16c")) return b_.CreateBitCast(b_.CreateFPTrunc(value, like(value, b_.getHalfTy())), i16);
  Value* raw = b_.CreateBitCast(value, like(value, b_.getInt32Ty()));
  const auto integer = [&](std::int64_t n) { return llvm::ConstantInt::get(raw->getType(), n); };
  const auto real = [&](double x) { return llvm::ConstantFP::get(value->getType(), x); };
  Value* sign = b_.CreateAnd(b_.CreateLShr(raw, integer(16)), integer(0x8000));
  Value* absolute = b_.CreateAnd(raw, integer(0x7fffffff));
  Value* magnitude = b_.CreateBitCast(absolute, value->getType());
  Value* odd = b_.CreateAnd(b_.CreateLShr(absolute, integer(13)), integer(1));
  Value* normal = b_.CreateSub(b_.CreateAdd(absolute, b_.CreateAdd(odd, integer(0xfff))), integer(112 << 23));
  normal = b_.CreateLShr(normal, integer(13));
  // Adding 0.5 leaves the value in units of 2^-24, rounded to even, in the low bits.
  Value* shifted = b_.CreateBitCast(b_.CreateFAdd(magnitude, real(0.5)), raw->getType());
  Value* subnormal = b_.CreateSub(shifted, integer(0x3f000000));
  Value* result = b_.CreateSelect(b_.CreateFCmpOLT(magnitude, real(0x1p-14)), subnormal, normal);
  result = b_.CreateSelect(b_.CreateFCmpOGE(magnitude, real(65520.0)), integer(0x7c00), result);
  Value* nan = b_.CreateOr(integer(0x7e00), b_.CreateAnd(b_.CreateLShr(raw, integer(13)), integer(0x1ff)));
  result = b_.CreateSelect(b_.CreateFCmpUNO(value, value), nan, result);
  return b_.CreateTrunc(b_.CreateOr(result, sign), i16);
}

Value* ScalarOps::widen_f16(Value* value) {
  llvm::Type* f32_type = like(value, b_.getFloatTy());
  if (target_.has("f16c")) return b_.CreateFPExt(b_.CreateBitCast(value, like(value, b_.getHalfTy())), f32_type);
  Value* raw = b_.CreateZExt(value, like(value, b_.getInt32Ty()));
  const auto integer = [&](std::int64_t n) { return llvm::ConstantInt::get(raw->getType(), n); };
  Value* sign = b_.CreateShl(b_.CreateAnd(raw, integer(0x8000)), integer(16));
  Value* magnitude = b_.CreateShl(b_.CreateAnd(raw, integer(0x7fff)), integer(13));
  // Adjusting the exponent by a multiplication also normalizes subnormals.
  Value* scaled = b_.CreateFMul(b_.CreateBitCast(magnitude, f32_type), llvm::ConstantFP::get(f32_type, 0x1p112));
  Value* finite = b_.CreateBitCast(scaled, raw->getType());
  Value* special = b_.CreateOr(magnitude, integer(0x7f800000));
  Value* is_nan = b_.CreateICmpUGT(magnitude, integer(0x0f800000));
  special = b_.CreateSelect(is_nan, b_.CreateOr(special, integer(0x400000)), special);
  Value* is_special = b_.CreateICmpUGE(magnitude, integer(0x0f800000));
  return b_.CreateBitCast(b_.CreateOr(b_.CreateSelect(is_special, special, finite), sign), f32_type);
}

/// Rounds an f64 to odd in f32: if inexact, takes the neighbour whose last bit is 1. Rounding the result to 16 bits
/// equals rounding the f64 directly (see round_to_odd in ir/support/tensors/narrow_float.h).
Value* ScalarOps::f64_to_odd(Value* value) {
  Value* nearest = b_.CreateFPTrunc(value, like(value, b_.getFloatTy()));
  Value* back = b_.CreateFPExt(nearest, value->getType());
  Value* bits = b_.CreateBitCast(nearest, like(value, b_.getInt32Ty()));
  const auto magnitude = [&](Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); };
  Value* beyond = b_.CreateFCmpOGT(magnitude(back), magnitude(value));
  Value* lower = b_.CreateSub(bits, b_.CreateZExt(beyond, bits->getType()));
  Value* odd = b_.CreateOr(lower, b_.CreateZExt(b_.CreateFCmpONE(back, value), bits->getType()));
  return b_.CreateBitCast(odd, nearest->getType());
}

/// Converts an i64 to an f64 that keeps at least 42 bits; the last one is 1 if lower bits were set. Exact below 2^53.
Value* ScalarOps::i64_to_odd(Value* value) {
  const auto integer = [&](std::int64_t n) { return llvm::ConstantInt::get(value->getType(), n); };
  Value* rest = b_.CreateAnd(value, integer(0x7ff));
  Value* kept = b_.CreateSub(value, rest);
  Value* sticky = b_.CreateSelect(b_.CreateICmpNE(rest, integer(0)), integer(0x800), integer(0));
  const std::int64_t exact = std::int64_t{1} << 53;
  Value* large = b_.CreateICmpUGT(b_.CreateAdd(value, integer(exact)), integer(2 * exact));
  value = b_.CreateSelect(large, b_.CreateOr(kept, sticky), value);
  return b_.CreateSIToFP(value, like(value, b_.getDoubleTy()));
}

/// Converts f32, f64, integers or boolean.
Value* ScalarOps::to_float(Value* value, DType from, DType to) {
  if ((to == bf16 || to == f16) && is_integer(from)) {
    value = from == i64 ? i64_to_odd(value) : b_.CreateSIToFP(value, like(value, b_.getDoubleTy()));
    from = f64;
  }
  if ((to == bf16 || to == f16) && from == f64) {
    value = f64_to_odd(value);
    from = f32;
  }
  llvm::Type* f32_type = like(value, b_.getFloatTy());
  llvm::Type* target = to == f64 ? like(value, b_.getDoubleTy()) : f32_type;
  if (from == boolean || from == u8)
    value = b_.CreateUIToFP(value, target);
  else if (is_integer(from) || from == i8)
    value = b_.CreateSIToFP(value, target);
  else if (value->getType() != target)
    value = b_.CreateFPCast(value, target);
  if (to == bf16) return narrow_bf16(value);
  return to == f16 ? narrow_f16(value) : value;
}

Value* ScalarOps::to_integer(Value* value, llvm::Type* target) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {target, value->getType()}, {value});
}

/// Converts an i32 to i8 or u8 with saturation.
Value* ScalarOps::saturated(Value* value, DType to) {
  const auto [lowest, highest] = integer_limits(to);
  const auto limit = [&](std::int64_t n) { return llvm::ConstantInt::getSigned(value->getType(), n); };
  value = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, limit(lowest));
  value = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, limit(highest));
  return b_.CreateTrunc(value, like(value, b_.getInt8Ty()));
}

Value* ScalarOps::cast(Value* value, DType from, DType to) {
  if (from == to) return value;
  if (from == bf16 || from == f16) {
    value = widen(value, from);
    from = f32;
    if (to == f32) return value;
  }
  if (is_float(to)) return to_float(value, from, to);
  llvm::Type* target = like(value, type(to));
  if (to == boolean) {
    llvm::Constant* zero = llvm::Constant::getNullValue(value->getType());
    return is_float(from) ? b_.CreateFCmpUNE(value, zero) : b_.CreateICmpNE(value, zero);
  }
  if (is_float(from) && is_byte(to)) return saturated(to_integer(value, like(value, b_.getInt32Ty())), to);
  if (is_float(from)) return to_integer(value, target);
  if (from == boolean || from == u8) return b_.CreateZExtOrTrunc(value, target);
  return b_.CreateSExtOrTrunc(value, target);
}

}  // namespace lathe::codegen
