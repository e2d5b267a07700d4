#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/intrinsics/hooks.h"
#include "codegen/llvm/math/scalar_ops.h"
#include "codegen/llvm/memory_ops.h"
#include "ir/kernel/intrinsics/region.h"

namespace lathe::codegen {

/// Emits the statements of a kernel into a function, at the insert point of the builder.
class StatementEmitter : KernelCode {
 public:
  using Value = llvm::Value;

  /// The arguments of the kernel in a function, by number. A function that emits no statements needs only the dims.
  struct Arguments {
    std::vector<Value*> buffers = {}, dims = {};
    Value *begin = nullptr, *end = nullptr;  ///< iterations of the parallel loop
    Value* status = nullptr;                 ///< address of the code of the first failed check
  };

  /// The arguments must outlive this object.
  StatementEmitter(const kernel::Kernel& kernel, const TargetCpu& target, llvm::IRBuilder<>& builder)
      : kernel_(kernel), b_(builder), scalars_(b_, target), memory_(b_, scalars_) {}

  /// Starts a function: forgets all values but constants and dims, which it binds.
  void start(llvm::Function* function, Arguments arguments);
  void block(const kernel::Block& statements);
  /// Emits a branch with the code that `then` emits.
  void when(Value* condition, llvm::function_ref<void()> then);
  /// Emits the number of iterations of a loop, and the values that its bounds depend on.
  Value* trip_count(const kernel::Loop& loop);
  /// Emits a value that depends on dims only.
  Value* of_dims(kernel::ValueId id) {
    demand(id);
    return value(id);
  }
  /// Whether the function has non-temporal stores.
  bool streams() const { return streams_; }

 private:
  const kernel::Instruction& info(kernel::ValueId id) const { return kernel_.values[id]; }
  llvm::IRBuilder<>& builder() override { return b_; }
  ScalarOps& scalars() override { return scalars_; }
  Value* address(kernel::BufferId buffer, kernel::ValueId index) override {
    return memory_.address(access(buffer, 1, kernel::none, 0), value(index));
  }

  Value* value(kernel::ValueId id) const override;

  void bind_values();
  void demand(kernel::ValueId value);
  void statement(const kernel::Compute& s);
  MemoryAccess access(kernel::BufferId buffer, int lanes, kernel::ValueId mask, int alignment) const;
  Value* compute(const kernel::Instruction& in);
  Value* shuffle(const kernel::Instruction& in, Value* a, Value* b);
  void statement(const kernel::Store& s);
  void statement(const kernel::Prefetch& s);
  llvm::AllocaInst* slot(llvm::Type* type, const std::string& name);
  void statement(const kernel::SetVar& s);
  void statement(const kernel::Alloc& s);
  [[noreturn]] void of_a_gpu(std::string_view what) const;
  void statement(const kernel::Barrier&);
  void statement(const kernel::IntrinsicRegion& s);
  void statement(const kernel::Check& s);
  void statement(const kernel::Branch& s);
  void statement(const kernel::Loop& s);
  void unrolled(const kernel::Loop& s);

  const kernel::Kernel& kernel_;
  llvm::IRBuilder<>& b_;
  ScalarOps scalars_;
  MemoryOps memory_;
  llvm::Function* function_ = nullptr;
  Arguments arguments_;
  std::vector<Value*> values_, vars_, buffers_;
  bool streams_ = false;
};

}  // namespace lathe::codegen
