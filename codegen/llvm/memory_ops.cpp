#include "codegen/llvm/memory_ops.h"

#include <cstdlib>

#include "ir/hardware/memory_units.h"
#include "ir/support/error.h"

namespace lathe::codegen {

using llvm::Value;

llvm::Type* MemoryOps::element(const MemoryAccess& access) {
  return access.dtype == boolean ? b_.getInt8Ty() : scalars_.type(access.dtype);
}

/// Masked scalars are vectors of one lane.
llvm::Type* MemoryOps::in_memory(const MemoryAccess& access) {
  if (access.lanes == 1 && !access.mask) return element(access);
  return llvm::FixedVectorType::get(element(access), static_cast<unsigned>(access.lanes));
}

llvm::Align MemoryOps::alignment(const MemoryAccess& access) {
  const auto natural = static_cast<int>(size_in_bytes(access.dtype));
  return llvm::Align(static_cast<std::uint64_t>(std::max(natural, access.alignment)));
}

Value* MemoryOps::address(const MemoryAccess& access, Value* index) {
  return b_.CreateGEP(element(access), access.base, index);
}

Value* MemoryOps::from_memory(const MemoryAccess& access, Value* value) {
  if (access.dtype == boolean) value = b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  if (access.lanes == 1 && value->getType()->isVectorTy()) value = b_.CreateExtractElement(value, std::uint64_t{0});
  return value;
}

Value* MemoryOps::to_memory(const MemoryAccess& access, Value* value) {
  if (access.dtype == boolean) {
    llvm::Type* byte = b_.getInt8Ty();
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType()))
      byte = llvm::FixedVectorType::get(byte, vector->getNumElements());
    value = b_.CreateZExt(value, byte);
  }
  if (access.lanes == 1 && access.mask) value = b_.CreateVectorSplat(1, value);
  return value;
}

Value* MemoryOps::load(const MemoryAccess& access, Value* index) {
  llvm::Type* type = in_memory(access);
  Value* at = address(access, index);
  if (!access.mask) return from_memory(access, b_.CreateAlignedLoad(type, at, alignment(access)));
  Value* mask = access.lanes == 1 ? b_.CreateVectorSplat(1, access.mask) : access.mask;
  Value* zero = llvm::Constant::getNullValue(type);
  return from_memory(access, b_.CreateMaskedLoad(type, at, alignment(access), mask, zero));
}

void MemoryOps::store(const MemoryAccess& access, Value* index, Value* value) {
  Value* at = address(access, index);
  value = to_memory(access, value);
  if (!access.mask) {
    b_.CreateAlignedStore(value, at, alignment(access));
    return;
  }
  Value* mask = access.lanes == 1 ? b_.CreateVectorSplat(1, access.mask) : access.mask;
  b_.CreateMaskedStore(value, at, alignment(access), mask);
}

void MemoryOps::stream(const MemoryAccess& access, Value* index, Value* value) {
  constexpr std::uint64_t line = cache_line_bytes;
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  llvm::LLVMContext& context = b_.getContext();
  if (size_in_bytes(access.dtype) * access.lanes % line != 0) return store(access, index, value);
  Value* at = address(access, index);
  Value* offset = b_.CreateAnd(b_.CreatePtrToInt(at, b_.getInt64Ty()), b_.getInt64(line - 1));
  auto* past = llvm::BasicBlock::Create(context, "past", function);
  auto* through = llvm::BasicBlock::Create(context, "through", function);
  auto* after = llvm::BasicBlock::Create(context, "after", function);
  b_.CreateCondBr(b_.CreateICmpEQ(offset, b_.getInt64(0)), past, through);
  b_.SetInsertPoint(past);
  llvm::StoreInst* streamed = b_.CreateAlignedStore(to_memory(access, value), at, llvm::Align(line));
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  streamed->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context, one));
  b_.CreateBr(after);
  b_.SetInsertPoint(through);
  store(access, index, value);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

Value* MemoryOps::ramp(Value* base, Value* stride, int lanes) {
  llvm::SmallVector<llvm::Constant*, 64> steps;
  for (int i = 0; i < lanes; ++i) steps.push_back(llvm::ConstantInt::getSigned(base->getType(), i));
  Value* iota = llvm::ConstantVector::get(steps);
  const auto count = static_cast<unsigned>(lanes);
  const auto* one = llvm::dyn_cast<llvm::ConstantInt>(stride);
  if (!one || !one->isOne()) iota = b_.CreateMul(iota, b_.CreateVectorSplat(count, stride));
  return b_.CreateAdd(b_.CreateVectorSplat(count, base), iota);
}

Value* MemoryOps::lane_index(Value* base, Value* stride, int lane) {
  return b_.CreateAdd(base, b_.CreateMul(stride, llvm::ConstantInt::getSigned(stride->getType(), lane)));
}

/// Loads the elements between the first and the last lane as vectors, and picks the lanes. |stride| is 1 or 2. The
/// second of two vectors starts at the last element of the first, so that nothing beyond the last lane is read.
Value* MemoryOps::load_and_pick(const MemoryAccess& access, Value* base, std::int64_t stride) {
  const int lanes = access.lanes, step = static_cast<int>(std::abs(stride));
  const auto position = [&](int lane) { return step * (stride < 0 ? lanes - 1 - lane : lane); };
  Value* first = stride < 0 ? lane_index(base, b_.getInt64(static_cast<std::uint64_t>(stride)), lanes - 1) : base;
  llvm::SmallVector<int, 64> picked(static_cast<std::size_t>(lanes));
  for (int lane = 0; lane < lanes; ++lane) {
    const int at = position(lane);
    picked[static_cast<std::size_t>(lane)] = at < lanes ? at : at + 1;
  }
  const auto vector = [&](int number) {
    MemoryAccess part = access;
    if (access.mask) {
      llvm::SmallVector<int, 64> from(static_cast<std::size_t>(lanes), lanes);  // no lane: false
      for (int lane = 0; lane < lanes; ++lane)
        if (const int at = picked[static_cast<std::size_t>(lane)] - number * lanes; at >= 0 && at < lanes)
          from[static_cast<std::size_t>(at)] = lane;
      part.mask = b_.CreateShuffleVector(access.mask, llvm::Constant::getNullValue(access.mask->getType()), from);
    }
    return load(part, number == 0 ? first : lane_index(first, b_.getInt64(1), lanes - 1));
  };
  Value* low = vector(0);
  return b_.CreateShuffleVector(low, step == 1 ? llvm::PoisonValue::get(low->getType()) : vector(1), picked);
}

/// Without a mask, and for other strides than -1, 2 and -2, emits one scalar load per lane: gather instructions are
/// not faster on any CPU.
Value* MemoryOps::load_strided(const MemoryAccess& access, Value* base, Value* stride) {
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(stride);
  if (const std::int64_t by = known ? known->getSExtValue() : 0; access.lanes > 1 && (by == -1 || std::abs(by) == 2))
    return load_and_pick(access, base, by);
  if (access.mask) return gather(access, ramp(base, stride, access.lanes));
  Value* result = llvm::PoisonValue::get(in_memory(access));
  for (int lane = 0; lane < access.lanes; ++lane) {
    Value* at = address(access, lane_index(base, stride, lane));
    Value* loaded = b_.CreateAlignedLoad(element(access), at, alignment(access));
    result = b_.CreateInsertElement(result, loaded, static_cast<std::uint64_t>(lane));
  }
  return from_memory(access, result);
}

void MemoryOps::store_strided(const MemoryAccess& access, Value* base, Value* stride, Value* value) {
  if (access.mask) return scatter(access, ramp(base, stride, access.lanes), value);
  value = to_memory(access, value);
  for (int lane = 0; lane < access.lanes; ++lane) {
    Value* at = address(access, lane_index(base, stride, lane));
    b_.CreateAlignedStore(b_.CreateExtractElement(value, static_cast<std::uint64_t>(lane)), at, alignment(access));
  }
}

Value* MemoryOps::gather(const MemoryAccess& access, Value* indices) {
  llvm::Type* type = in_memory(access);
  Value* zero = access.mask ? llvm::Constant::getNullValue(type) : nullptr;
  return from_memory(access,
                     b_.CreateMaskedGather(type, address(access, indices), alignment(access), access.mask, zero));
}

void MemoryOps::scatter(const MemoryAccess& access, Value* indices, Value* value) {
  b_.CreateMaskedScatter(to_memory(access, value), address(access, indices), alignment(access), access.mask);
}

void MemoryOps::prefetch(const MemoryAccess& access, Value* index, bool to_write) {
  prefetch_line(b_, address(access, index), to_write);
}

void prefetch_line(llvm::IRBuilderBase& builder, Value* address, bool to_write) {
  constexpr unsigned level_2 = 2, data = 1;
  builder.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {builder.getPtrTy()},
      {address, builder.getInt32(to_write ? 1 : 0), builder.getInt32(level_2), builder.getInt32(data)});
}

}  // namespace lathe::codegen
