#include "codegen/llvm/library/initial_value_emitter.h"

#include <fmt/core.h>

#include <array>
#include <numbers>

#include "codegen/llvm/math/scalar_ops.h"
#include "ir/support/error.h"

namespace lathe::codegen {

using llvm::Value;

namespace {

using Words = std::array<Value*, 4>;

/// Philox 4x32-10; see ir/support/numbers/philox.h.
Words philox(llvm::IRBuilder<>& b, Words counter, std::array<Value*, 2> key) {
  constexpr std::uint64_t multiplier0 = 0xd2511f53, multiplier1 = 0xcd9e8d57;
  constexpr std::uint32_t weyl0 = 0x9e3779b9, weyl1 = 0xbb67ae85;
  constexpr int rounds = 10;
  const auto halves = [&](Value* word, std::uint64_t multiplier) {
    Value* product = b.CreateMul(b.CreateZExt(word, b.getInt64Ty()), b.getInt64(multiplier));
    return std::pair(b.CreateTrunc(b.CreateLShr(product, 32), b.getInt32Ty()),
                     b.CreateTrunc(product, b.getInt32Ty()));
  };
  for (int round = 0; round < rounds; ++round) {
    const auto [high0, low0] = halves(counter[0], multiplier0);
    const auto [high1, low1] = halves(counter[2], multiplier1);
    counter = {b.CreateXor(b.CreateXor(high1, counter[1]), key[0]), low1,
               b.CreateXor(b.CreateXor(high0, counter[3]), key[1]), low0};
    key = {b.CreateAdd(key[0], b.getInt32(weyl0)), b.CreateAdd(key[1], b.getInt32(weyl1))};
  }
  return counter;
}

/// The top 53 bits of high:low times 2^-53.
Value* uniform(llvm::IRBuilder<>& b, Value* high, Value* low) {
  Value* word = b.CreateOr(b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32), b.CreateZExt(low, b.getInt64Ty()));
  return b.CreateFMul(b.CreateSIToFP(b.CreateLShr(word, 11), b.getDoubleTy()),
                      llvm::ConstantFP::get(b.getDoubleTy(), 0x1p-53));
}

}  // namespace

InitialValueEmitter::Draw InitialValueEmitter::draw(Value* element) {
  const auto low = [&](Value* word) { return b_.CreateTrunc(word, b_.getInt32Ty()); };
  const auto high = [&](Value* word) { return low(b_.CreateLShr(word, 32)); };
  const Words words =
      philox(b_, {low(element), high(element), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
  return {uniform(b_, words[0], words[1]), uniform(b_, words[2], words[3])};
}

Value* InitialValueEmitter::deviation(const LibraryInitial& initial, Value* fan_in) {
  Value* given = llvm::ConstantFP::get(b_.getDoubleTy(), initial.b);
  if (initial.fan_in.terms.empty()) return given;
  Value* fan = b_.CreateSIToFP(at_least(fan_in, 1), b_.getDoubleTy());
  return b_.CreateFDiv(given, b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, fan));
}

Value* InitialValueEmitter::random_number(const LibraryInitial& initial, Value* element, Value* deviation) {
  llvm::Type* f64_type = b_.getDoubleTy();
  const auto constant = [&](double value) { return llvm::ConstantFP::get(f64_type, value); };
  const Draw numbers = draw(element);
  if (initial.kind == LibraryInitial::Kind::uniform)
    return b_.CreateFAdd(constant(initial.a), b_.CreateFMul(constant(initial.b - initial.a), numbers.first));
  // Box and Muller 1958
  const auto math = [&](const char* name, Value* of) {
    return b_.CreateCall(module_.getOrInsertFunction(name, f64_type, f64_type), {of});
  };
  Value* logarithm = math("log", b_.CreateFSub(constant(1), numbers.first));
  Value* radius = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, b_.CreateFMul(constant(-2), logarithm));
  Value* cosine = math("cos", b_.CreateFMul(constant(2 * std::numbers::pi), numbers.second));
  return b_.CreateFAdd(constant(initial.a), b_.CreateFMul(b_.CreateFMul(deviation, radius), cosine));
}

llvm::Function* InitialValueEmitter::function(const LibraryTensor& state, const LibraryInitial& initial) {
  static const TargetCpu any{.cpu = "x86-64", .features = {}};
  llvm::Function*& f =
      functions_[{initial.kind, state.dtype, initial.a, initial.b, initial.fan_in.terms.empty(), initial.bytes}];
  if (f) return f;
  f = start(fmt::format("{}_initial{}", library_.prefix, functions_.size()), b_.getVoidTy(),
            {ptr(), i64(), i64(), i64(), i64()}, llvm::GlobalValue::InternalLinkage);
  Value *values = f->getArg(0), *elements = f->getArg(1);
  seed_ = f->getArg(2), stream_ = f->getArg(3);
  const DType dtype = is_complex(state.dtype) ? real_part(state.dtype) : state.dtype;
  const auto copy = [&](const std::string& data) {
    b_.CreateMemCpy(values, llvm::MaybeAlign(), bytes(data, "initial", llvm::Align(8)), llvm::MaybeAlign(),
                    data.size());
  };
  ScalarOps scalars(b_, any);
  switch (initial.kind) {
    case LibraryInitial::Kind::values: copy(initial.bytes); break;
    case LibraryInitial::Kind::random_state:
      b_.CreateStore(seed_, values);
      b_.CreateStore(number(0), word(values, 1));
      break;
    case LibraryInitial::Kind::constant:
      // `bytes` is one element.
      repeat(elements, [&](Value* i) {
        const auto size = static_cast<std::int64_t>(initial.bytes.size());
        b_.CreateMemCpy(byte(values, b_.CreateMul(i, number(size))), llvm::MaybeAlign(),
                        bytes(initial.bytes, "element", llvm::Align(8)), llvm::MaybeAlign(), initial.bytes.size());
      });
      break;
    case LibraryInitial::Kind::normal:
    case LibraryInitial::Kind::uniform: {
      Value* const spread = deviation(initial, f->getArg(4));
      repeat(elements, [&](Value* i) {
        Value* drawn = scalars.cast(random_number(initial, i, spread), f64, dtype);
        if (dtype == boolean) drawn = b_.CreateZExt(drawn, b_.getInt8Ty());
        const auto size = static_cast<std::int64_t>(size_in_bytes(state.dtype));
        Value* at = byte(values, b_.CreateMul(i, number(size)));
        b_.CreateStore(drawn, at);
        if (is_complex(state.dtype))  // a real number
          b_.CreateStore(llvm::Constant::getNullValue(drawn->getType()), byte(at, number(size / 2)));
      });
      break;
    }
  }
  b_.CreateRetVoid();
  return f;
}

}  // namespace lathe::codegen
