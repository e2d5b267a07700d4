#include <array>

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/emit/constant_data.h"
#include "codegen/llvm/math/vector_math.h"

/// exp of f32, on the critical path of softmax, GELU and cross entropy.
namespace lathe::codegen {

using llvm::Value;

namespace {

/// 2^(i/16), rounded to nearest.
constexpr std::array<float, 16> sixteenth_powers = {0x1.000000p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
                                                    0x1.306fe0p+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
                                                    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
                                                    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};

/// Adding this to n leaves n in sixteenths in the last bits.
constexpr double to_sixteenths = 0x1.8p+19;
constexpr std::int64_t to_sixteenths_bits = 0x49400000;

}  // namespace

/// e^x = 2^n e^r. n is x / ln 2 rounded to sixteenths; its power of two uses a table. |r| <= ln 2 / 32, by Cody and
/// Waite, so a minimax polynomial of degree 3 suffices.
Value* VectorMath::exp(Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy()) return call_library("exp", {x});
  const unsigned width = scaling_width(x->getType());
  if (width == 0) {
    // Beyond these bounds the result is 0 or inf. A NaN fails both comparisons and stays.
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, real(x, -104.0)), real(x, -104.0), x);
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, real(x, 89.0)), real(x, 89.0), x);
  }
  Value* shifted = multiply_add(x, real(x, 1.44269504088896341), real(x, to_sixteenths));
  Value* n = b_.CreateFSub(shifted, real(x, to_sixteenths));
  // ln 2 in two parts: n times the first is exact.
  Value* r = multiply_add(n, real(x, -0.693359375), x);
  r = multiply_add(n, real(x, 2.12194440e-4), r);
  // An n beyond those bounds, or a NaN, determines the result as long as the other factor is a positive number.
  if (width != 0) r = within(r, 0.022, width);
  Value* index = b_.CreateBitCast(shifted, as_integer(x->getType()));
  Value* power = sixteenth_power(index);
  Value* p = horner(r, {0.16666667, 0.500021, 1.0});
  Value* result = multiply_add(p, b_.CreateFMul(r, power), power);
  if (width != 0) return scale_by_floor(result, n, width);
  return scale_by_power(result, b_.CreateAShr(b_.CreateSub(index, bits(index, to_sixteenths_bits)), bits(index, 4)));
}

/// Returns the lanes of the instructions that clamp r and scale by 2^n for any n, or 0 if the CPU lacks them.
unsigned VectorMath::scaling_width(llvm::Type* type) const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector || !target_.has("avx512f") || !target_.has("avx512dq") || !target_.has("avx512vl")) return 0;
  return vector->getNumElements() < 16 ? 8 : 16;
}

/// Applies `compute` to vectors of `width` lanes; splits or pads the arguments.
Value* VectorMath::in_parts(unsigned width, llvm::ArrayRef<Value*> args,
                            llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> compute) {
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(args[0]->getType())->getNumElements();
  const auto lanes_of = [&](Value* v, unsigned first, unsigned count) {
    llvm::SmallVector<int, 64> picked;
    for (unsigned i = first; i < first + count; ++i) picked.push_back(i < lanes ? static_cast<int>(i) : -1);
    return b_.CreateShuffleVector(v, picked);
  };
  llvm::SmallVector<Value*, 4> parts;
  for (unsigned first = 0; first < lanes; first += width) {
    llvm::SmallVector<Value*, 2> part;
    for (Value* arg : args) part.push_back(lanes_of(arg, first, width));
    parts.push_back(compute(part));
  }
  return lanes < width ? lanes_of(parts[0], 0, lanes) : llvm::concatenateVectors(b_, parts);
}

/// Clamps r to -bound .. bound; a NaN becomes a value in that range.
Value* VectorMath::within(Value* r, double bound, unsigned width) {
  return in_parts(width, {r}, [&](llvm::ArrayRef<Value*> args) -> Value* {
    Value* x = args[0];
    Value* smaller_magnitude = b_.getInt32(2);
    Value* current_rounding = b_.getInt32(4);
    if (width == 8)
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_range_ps_256, {},
                                {x, real(x, bound), smaller_magnitude, x, b_.getInt8(0xff)});
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
                              {x, real(x, bound), smaller_magnitude, x, b_.getInt16(0xffff), current_rounding});
  });
}

/// x * 2^floor(n), rounded once.
Value* VectorMath::scale_by_floor(Value* x, Value* n, unsigned width) {
  return in_parts(width, {x, n}, [&](llvm::ArrayRef<Value*> args) -> Value* {
    if (width == 8)
      return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_256, {},
                                {args[0], args[1], args[0], b_.getInt8(0xff)});
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                              {args[0], args[1], args[0], b_.getInt16(0xffff), b_.getInt32(4)});
  });
}

/// Returns x * 2^n for |n| <= 252, rounded once even if the result is subnormal, with two factors in the normal
/// range. If x is NaN, so is the result.
Value* VectorMath::scale_by_power(Value* x, Value* n) {
  Value* half = b_.CreateAShr(n, bits(n, 1));
  const auto power = [&](Value* exponent) {
    Value* biased = b_.CreateAdd(exponent, bits(exponent, 127));
    return b_.CreateBitCast(b_.CreateShl(biased, bits(biased, 23)), x->getType());
  };
  return b_.CreateFMul(b_.CreateFMul(x, power(half)), power(b_.CreateSub(n, half)));
}

/// Returns 2^(i/16) for the last four bits i of each lane.
Value* VectorMath::sixteenth_power(Value* index) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  const auto powers = [&](unsigned from, unsigned count) {
    return llvm::ConstantDataVector::get(b_.getContext(), llvm::ArrayRef(sixteenth_powers).slice(from, count));
  };
  const auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> args) -> Value* {
    return b_.CreateIntrinsic(id, {}, args);
  };
  if (vector && vector->getNumElements() >= 16 && target_.has("avx512f"))
    return in_parts(16, {index}, [&](llvm::ArrayRef<Value*> args) {
      return call(llvm::Intrinsic::x86_avx512_permvar_sf_512, {powers(0, 16), args[0]});
    });
  if (vector && target_.has("avx512vl"))
    return in_parts(8, {index}, [&](llvm::ArrayRef<Value*> args) {
      return call(llvm::Intrinsic::x86_avx512_vpermi2var_ps_256, {powers(0, 8), args[0], powers(8, 8)});
    });
  if (vector && target_.has("avx2"))
    return in_parts(8, {index}, [&](llvm::ArrayRef<Value*> args) {
      Value* upper = b_.CreateICmpNE(b_.CreateAnd(args[0], bits(args[0], 8)), bits(args[0], 0));
      return b_.CreateSelect(upper, call(llvm::Intrinsic::x86_avx2_permps, {powers(8, 8), args[0]}),
                             call(llvm::Intrinsic::x86_avx2_permps, {powers(0, 8), args[0]}));
    });
  return load_lanes(powers(0, 16), b_.CreateAnd(index, bits(index, 15)));
}

/// Loads the table elements at the lanes of `index` from memory.
Value* VectorMath::load_lanes(llvm::Constant* table, Value* index) {
  llvm::GlobalVariable* memory = add_constant(*b_.GetInsertBlock()->getModule(), table);
  const auto load = [&](Value* at) {
    return b_.CreateLoad(b_.getFloatTy(), b_.CreateGEP(b_.getFloatTy(), memory, at));
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  if (!vector) return load(index);
  Value* result = llvm::PoisonValue::get(with_scalar(index->getType(), b_.getFloatTy()));
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
    result = b_.CreateInsertElement(result, load(b_.CreateExtractElement(index, lane)), lane);
  return result;
}

}  // namespace lathe::codegen
