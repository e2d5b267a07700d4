#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/math/scalar_ops.h"
#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// One access to elements of `dtype` at `base`. `mask` may be null. boolean elements are bytes in memory and i1 in
/// registers.
struct MemoryAccess {
  llvm::Value* base = nullptr;
  DType dtype = f32;
  int lanes = 1;
  llvm::Value* mask = nullptr;
  int alignment = 0;
};

/// Prefetches the cache line at an address into L2, so that it does not displace data in L1.
void prefetch_line(llvm::IRBuilderBase& builder, llvm::Value* address, bool to_write);

class MemoryOps {
 public:
  MemoryOps(llvm::IRBuilder<>& builder, ScalarOps& scalars) : b_(builder), scalars_(scalars) {}

  llvm::Value* load(const MemoryAccess& access, llvm::Value* index);
  llvm::Value* load_strided(const MemoryAccess& access, llvm::Value* base, llvm::Value* stride);
  llvm::Value* gather(const MemoryAccess& access, llvm::Value* indices);
  void store(const MemoryAccess& access, llvm::Value* index, llvm::Value* value);
  /// Emits an unmasked non-temporal store, which bypasses the caches if the address is aligned to a cache line.
  void stream(const MemoryAccess& access, llvm::Value* index, llvm::Value* value);
  void store_strided(const MemoryAccess& access, llvm::Value* base, llvm::Value* stride, llvm::Value* value);
  void scatter(const MemoryAccess& access, llvm::Value* indices, llvm::Value* value);
  void prefetch(const MemoryAccess& access, llvm::Value* index, bool to_write);
  llvm::Value* ramp(llvm::Value* base, llvm::Value* stride, int lanes);
  llvm::Value* address(const MemoryAccess& access, llvm::Value* index);

 private:
  llvm::Type* element(const MemoryAccess& access);
  llvm::Type* in_memory(const MemoryAccess& access);
  llvm::Align alignment(const MemoryAccess& access);
  llvm::Value* from_memory(const MemoryAccess& access, llvm::Value* value);
  llvm::Value* to_memory(const MemoryAccess& access, llvm::Value* value);
  llvm::Value* load_and_pick(const MemoryAccess& access, llvm::Value* base, std::int64_t stride);
  llvm::Value* lane_index(llvm::Value* base, llvm::Value* stride, int lane);

  llvm::IRBuilder<>& b_;
  ScalarOps& scalars_;
};

}  // namespace lathe::codegen
