#include "codegen/llvm/math/scalar_ops.h"

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/support/error.h"

namespace lathe::codegen {

using llvm::Value;

llvm::Type* ScalarOps::type(DType dtype, int lanes) {
  const auto scalar = [&]() -> llvm::Type* {
    switch (dtype) {
      case DType::f64: return b_.getDoubleTy();
      case DType::f32: return b_.getFloatTy();
      case DType::bf16:
      case DType::f16: return b_.getInt16Ty();
      case DType::i64: return b_.getInt64Ty();
      case DType::i32: return b_.getInt32Ty();
      case DType::i8:
      case DType::u8: return b_.getInt8Ty();
      case DType::boolean: return b_.getInt1Ty();
      case DType::c64:
      case DType::c128: break;
    }
    throw InternalError("a complex value in a kernel");
  }();
  if (lanes == 1) return scalar;
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

llvm::Type* ScalarOps::like(Value* shape, llvm::Type* scalar) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType()))
    return llvm::FixedVectorType::get(scalar, vector->getNumElements());
  return scalar;
}

llvm::Constant* ScalarOps::constant(const kernel::Instruction& in) {
  llvm::Type* of = type(in.type.scalar, in.type.lanes);
  if (in.type.scalar == bf16) return llvm::ConstantInt::get(of, kernel::bf16_bits(static_cast<float>(in.real)));
  if (in.type.scalar == f16) return llvm::ConstantInt::get(of, kernel::f16_bits(static_cast<float>(in.real)));
  if (is_float(in.type.scalar)) return llvm::ConstantFP::get(of, in.real);
  return llvm::ConstantInt::getSigned(of, in.integer);
}

Value* ScalarOps::apply(ScalarOp op, DType dtype, llvm::ArrayRef<Value*> args) {
  if (op == ScalarOp::select) return b_.CreateSelect(args[0], args[1], args[2]);
  Value* a = args[0];
  Value* b = args.size() > 1 ? args[1] : nullptr;
  return is_float(dtype) ? on_floats(op, a, b) : on_integers(op, a, b);
}

/// Returns NaN if either operand is NaN, and the second operand if both are equal. The NaN is derived from `a`,
/// because LLVM would merge two selects of `a` into one that has no machine instruction. With a - a, `b` is needed by
/// a single instruction, and the mask of `a` is computed in parallel.
Value* ScalarOps::min_max(llvm::CmpInst::Predicate better, Value* a, Value* b) {
  Value* chosen = b_.CreateSelect(b_.CreateFCmp(better, a, b), a, b);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), b_.CreateFSub(a, a), chosen);
}

Value* ScalarOps::on_floats(ScalarOp op, Value* a, Value* b) {
  const auto unary = [&](llvm::Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, a); };
  const auto real = [&](double value) { return llvm::ConstantFP::get(a->getType(), value); };
  switch (op) {
    case ScalarOp::add: return b_.CreateFAdd(a, b);
    case ScalarOp::sub: return b_.CreateFSub(a, b);
    case ScalarOp::mul: return b_.CreateFMul(a, b);
    case ScalarOp::div: return b_.CreateFDiv(a, b);
    case ScalarOp::min: return min_max(llvm::CmpInst::FCMP_OLT, a, b);
    case ScalarOp::max: return min_max(llvm::CmpInst::FCMP_OGT, a, b);
    case ScalarOp::pow: return math_.pow(a, b);
    case ScalarOp::neg: return b_.CreateFNeg(a);
    case ScalarOp::abs: return unary(llvm::Intrinsic::fabs);
    case ScalarOp::sign: {
      Value* below = b_.CreateSelect(b_.CreateFCmpOLT(a, real(0)), real(-1), a);
      return b_.CreateSelect(b_.CreateFCmpOGT(a, real(0)), real(1), below);
    }
    case ScalarOp::floor: return unary(llvm::Intrinsic::floor);
    case ScalarOp::round: return unary(llvm::Intrinsic::roundeven);
    case ScalarOp::exp: return math_.exp(a);
    case ScalarOp::log: return math_.log(a);
    case ScalarOp::sqrt: return unary(llvm::Intrinsic::sqrt);
    case ScalarOp::rsqrt: return b_.CreateFDiv(real(1), unary(llvm::Intrinsic::sqrt));
    case ScalarOp::sin: return math_.sin(a);
    case ScalarOp::cos: return math_.cos(a);
    case ScalarOp::tanh: return math_.tanh(a);
    case ScalarOp::erf: return math_.erf(a);
    case ScalarOp::eq: return b_.CreateFCmpOEQ(a, b);
    case ScalarOp::ne: return b_.CreateFCmpUNE(a, b);
    case ScalarOp::lt: return b_.CreateFCmpOLT(a, b);
    case ScalarOp::le: return b_.CreateFCmpOLE(a, b);
    default: throw InternalError("a scalar op that is not defined on floats");
  }
}

Value* ScalarOps::on_integers(ScalarOp op, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  switch (op) {
    case ScalarOp::add: return b_.CreateAdd(a, b);
    case ScalarOp::sub: return b_.CreateSub(a, b);
    case ScalarOp::mul: return b_.CreateMul(a, b);
    case ScalarOp::div:
    case ScalarOp::rem: return divide(op, a, b);
    case ScalarOp::min: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
    case ScalarOp::max: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    case ScalarOp::neg: return b_.CreateNeg(a);
    case ScalarOp::abs: return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse());
    case ScalarOp::sign:
      return b_.CreateSub(b_.CreateZExt(b_.CreateICmpSGT(a, zero), type),
                          b_.CreateZExt(b_.CreateICmpSLT(a, zero), type));
    case ScalarOp::eq: return b_.CreateICmpEQ(a, b);
    case ScalarOp::ne: return b_.CreateICmpNE(a, b);
    case ScalarOp::lt: return b_.CreateICmpSLT(a, b);
    case ScalarOp::le: return b_.CreateICmpSLE(a, b);
    case ScalarOp::logical_and:
    case ScalarOp::bit_and: return b_.CreateAnd(a, b);
    case ScalarOp::logical_or:
    case ScalarOp::bit_or: return b_.CreateOr(a, b);
    case ScalarOp::bit_xor: return b_.CreateXor(a, b);
    case ScalarOp::logical_not: return b_.CreateNot(a);
    case ScalarOp::shift_left:
    case ScalarOp::shift_right: return shift(op, a, b);
    default: throw InternalError("a scalar op that is not defined on integers");
  }
}

/// x / 0 = 0, x rem 0 = 0, x / -1 = -x (wrapping), x rem -1 = 0: division must not trap.
Value* ScalarOps::divide(ScalarOp op, Value* a, Value* b) {
  const bool quotient = op == ScalarOp::div;
  const auto plain = [&](Value* by) { return quotient ? b_.CreateSDiv(a, by) : b_.CreateSRem(a, by); };
  llvm::Type* type = a->getType();
  const auto* known = llvm::dyn_cast<llvm::Constant>(b);
  if (known && known->getType()->isVectorTy()) known = known->getSplatValue();
  if (const auto* integer = llvm::dyn_cast_or_null<llvm::ConstantInt>(known);
      integer && !integer->isZero() && !integer->isMinusOne())
    return plain(b);
  Value* is_zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(type));
  Value* is_minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type));
  Value* result = plain(b_.CreateSelect(b_.CreateOr(is_zero, is_minus_one), llvm::ConstantInt::get(type, 1), b));
  if (!quotient) return result;
  result = b_.CreateSelect(is_minus_one, b_.CreateNeg(a), result);
  return b_.CreateSelect(is_zero, llvm::Constant::getNullValue(type), result);
}

Value* ScalarOps::shift(ScalarOp op, Value* a, Value* amount) {
  const bool left = op == ScalarOp::shift_left;
  llvm::Type* type = a->getType();
  Value* inside = b_.CreateICmpULT(amount, llvm::ConstantInt::get(type, type->getScalarSizeInBits()));
  Value* safe = b_.CreateSelect(inside, amount, llvm::Constant::getNullValue(type));
  Value* shifted = left ? b_.CreateShl(a, safe) : b_.CreateLShr(a, safe);
  return b_.CreateSelect(inside, shifted, llvm::Constant::getNullValue(type));
}

/// min and max of floats test for NaN once, over all lanes, instead of in every step.
Value* ScalarOps::reduce(ScalarOp op, DType dtype, Value* vector) {
  if (!is_float(dtype) || (op != ScalarOp::min && op != ScalarOp::max))
    return halve(vector, [&](Value* a, Value* b) { return apply(op, dtype, {a, b}); });
  const auto better = op == ScalarOp::min ? llvm::CmpInst::FCMP_OLT : llvm::CmpInst::FCMP_OGT;
  Value* chosen =
      halve(vector, [&](Value* a, Value* b) { return b_.CreateSelect(b_.CreateFCmp(better, a, b), a, b); });
  Value* unordered = b_.CreateOrReduce(b_.CreateFCmpUNO(vector, vector));
  // LLVM would narrow a plain constant with the result, but there is no f16 arithmetic.
  llvm::Constant* nan = llvm::ConstantFP::getNaN(chosen->getType());
  return b_.CreateSelect(unordered, b_.CreateArithmeticFence(nan, chosen->getType()), chosen);
}

/// Combines lanes [0, n/2) with [n/2, n), then repeats on the result until one lane is left.
Value* ScalarOps::halve(Value* vector, llvm::function_ref<Value*(Value*, Value*)> combine) {
  auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  while (lanes > 1) {
    lanes /= 2;
    llvm::SmallVector<int, 32> low, high;
    for (int i = 0; i < lanes; ++i) low.push_back(i), high.push_back(i + lanes);
    if (lanes == 1)
      return combine(b_.CreateExtractElement(vector, std::uint64_t{0}),
                     b_.CreateExtractElement(vector, std::uint64_t{1}));
    vector = combine(b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }
  return vector;
}

}  // namespace lathe::codegen
