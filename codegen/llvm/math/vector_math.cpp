#include "codegen/llvm/math/vector_math.h"

#include <cmath>

#include <llvm/IR/Module.h>

namespace lathe::codegen {

using llvm::Value;

llvm::Constant* VectorMath::real(Value* like, double value) { return llvm::ConstantFP::get(like->getType(), value); }

llvm::Constant* VectorMath::bits(Value* like, std::int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

llvm::Type* VectorMath::with_scalar(llvm::Type* shape, llvm::Type* scalar) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape))
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return scalar;
}

llvm::Type* VectorMath::as_integer(llvm::Type* type) {
  return with_scalar(type, b_.getIntNTy(type->getScalarSizeInBits()));
}

Value* VectorMath::unary(llvm::Intrinsic::ID id, Value* x) { return b_.CreateUnaryIntrinsic(id, x); }

Value* VectorMath::fma(Value* a, Value* b, Value* c) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

/// For polynomials: fused if the CPU has fma, since only the last place differs.
Value* VectorMath::multiply_add(Value* a, Value* b, Value* c) {
  return target_.has("fma") ? fma(a, b, c) : b_.CreateFAdd(b_.CreateFMul(a, b), c);
}

Value* VectorMath::horner(Value* x, std::initializer_list<double> from_high_degree) {
  Value* result = nullptr;
  for (const double c : from_high_degree) result = result ? multiply_add(result, x, real(x, c)) : real(x, c);
  return result;
}

Value* VectorMath::copysign(Value* magnitude, Value* sign) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value* VectorMath::call_library(const char* name, llvm::ArrayRef<Value*> args) {
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  llvm::Type* f64 = b_.getDoubleTy();
  const llvm::SmallVector<llvm::Type*, 2> types(args.size(), f64);
  llvm::FunctionCallee callee = module->getOrInsertFunction(name, llvm::FunctionType::get(f64, types, false));
  llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotThrow();
  // LLVM would replace some calls by functions that loader.cpp does not provide, such as ldexp for pow(2, n).
  const auto call = [&](llvm::ArrayRef<Value*> operands) {
    llvm::CallInst* made = b_.CreateCall(callee, operands);
    made->addFnAttr(llvm::Attribute::NoBuiltin);
    return made;
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if (!vector) return call(args);
  Value* result = llvm::PoisonValue::get(vector);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    llvm::SmallVector<Value*, 2> of_lane;
    for (Value* arg : args) of_lane.push_back(b_.CreateExtractElement(arg, lane));
    result = b_.CreateInsertElement(result, call(of_lane), lane);
  }
  return result;
}

/// log x = k ln 2 + log m, m in [sqrt(1/2), sqrt(2)); log(1 + f) from s = f / (2 + f) as in FreeBSD's e_logf.c.
Value* VectorMath::log(Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy()) return call_library("log", {x});
  Value* tiny = b_.CreateFCmpOLT(x, real(x, 0x1p-126));
  Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, real(x, 0x1p25)), x);
  Value* raw = b_.CreateBitCast(scaled, as_integer(x->getType()));
  constexpr std::int64_t sqrt_half = 0x3f3504f3;
  Value* offset = b_.CreateSub(raw, bits(raw, sqrt_half));
  Value* k = b_.CreateSIToFP(b_.CreateAShr(offset, bits(raw, 23)), x->getType());
  k = b_.CreateFAdd(k, b_.CreateSelect(tiny, real(x, -25.0), real(x, 0.0)));
  Value* mantissa = b_.CreateAdd(b_.CreateAnd(offset, bits(raw, 0x7fffff)), bits(raw, sqrt_half));
  Value* f = b_.CreateFSub(b_.CreateBitCast(mantissa, x->getType()), real(x, 1.0));
  Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, real(x, 2.0)));
  Value* z = b_.CreateFMul(s, s);
  Value* series = b_.CreateFMul(z, horner(z, {0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693}));
  Value* half_square = b_.CreateFMul(b_.CreateFMul(f, real(x, 0.5)), f);
  Value* low = multiply_add(k, real(x, 9.0580006145e-06), b_.CreateFMul(s, b_.CreateFAdd(half_square, series)));
  Value* sum = b_.CreateFAdd(b_.CreateFSub(low, half_square), f);
  Value* result = multiply_add(k, real(x, 6.9313812256e-01), sum);
  // +inf and NaN return themselves, 0 returns -inf, negative numbers return NaN.
  result = b_.CreateSelect(b_.CreateFCmpOLT(x, real(x, INFINITY)), result, x);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, real(x, 0.0)), real(x, -INFINITY), result);
  return b_.CreateSelect(b_.CreateFCmpOLT(x, real(x, 0.0)), real(x, NAN), result);
}

/// |x| < 0.675: x + x^3 P(x^2), minimax; otherwise 1 - 2 / (e^2|x| + 1).
Value* VectorMath::tanh(Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy()) return call_library("tanh", {x});
  Value* magnitude = unary(llvm::Intrinsic::fabs, x);
  Value* grown = b_.CreateFAdd(exp(b_.CreateFMul(magnitude, real(x, 2.0))), real(x, 1.0));
  Value* large = b_.CreateFSub(real(x, 1.0), b_.CreateFDiv(real(x, 2.0), grown));
  Value* z = b_.CreateFMul(x, x);
  Value* p = horner(z, {0.00215268391, -0.00819001347, 0.021706894, -0.0539481789, 0.133332208, -0.333333313});
  Value* small = multiply_add(b_.CreateFMul(z, x), p, x);
  // The series would lose the sign of -0.
  return copysign(b_.CreateSelect(b_.CreateFCmpOLT(magnitude, real(x, 0.675)), small, large), x);
}

/// |x| < 0.9375: x + x R(x^2); otherwise 1 - e^(-t + t S(t)), t = min(|x|, 4). Both minimax.
Value* VectorMath::erf(Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy()) return call_library("erf", {x});
  Value* magnitude = unary(llvm::Intrinsic::fabs, x);
  Value* t = b_.CreateSelect(b_.CreateFCmpOGT(magnitude, real(x, 4.0)), real(x, 4.0), magnitude);
  Value* s = horner(
      t, {-1.12300695e-05, 0.000322794251, -0.00364242983, 0.0237620194, -0.106236845, -0.635151327, -0.12864849});
  Value* large = b_.CreateFSub(real(x, 1.0), exp(multiply_add(s, t, b_.CreateFNeg(t))));
  Value* z = b_.CreateFMul(x, x);
  Value* r = horner(
      z, {8.00027919e-05, -0.000805038435, 0.00519243814, -0.026855737, 0.112836257, -0.376126289, 0.128379166});
  Value* small = multiply_add(r, x, x);
  return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, real(x, 0.9375)), small, copysign(large, x));
}

}  // namespace lathe::codegen
