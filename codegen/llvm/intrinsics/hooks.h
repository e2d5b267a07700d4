#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>
#include <string_view>
#include <vector>

#include "codegen/llvm/math/scalar_ops.h"
#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/intrinsics/record.h"

/// Emits intrinsics as LLVM IR: one file of hooks per family, and one table.
namespace lathe::codegen {

/// The kernel that is emitted, at an instruction.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  virtual llvm::IRBuilder<>& builder() = 0;
  virtual ScalarOps& scalars() = 0;
  virtual llvm::Value* value(kernel::ValueId id) const = 0;
  /// Returns the address of buffer[index].
  virtual llvm::Value* address(kernel::BufferId buffer, kernel::ValueId index) = 0;
};

struct IntrinsicHook {
  const kernel::IntrinsicRecord* record;
  /// Returns the operation's value, or null.
  llvm::Value* (*emit)(const kernel::Instruction& in, KernelCode& kernel);
  /// Returns the feature that the CPU lacks to run it, or nothing; null: every CPU runs it.
  std::string_view (*lacks)(const TargetCpu& target) = nullptr;
  /// Emit code at the start and at the end of a function with such an operation; null: none.
  void (*enter)(llvm::IRBuilder<>& builder) = nullptr;
  void (*leave)(llvm::IRBuilder<>& builder) = nullptr;
};

/// Returns the hook of an intrinsic. Throws InternalError [machine_hook] if it has none.
const IntrinsicHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in);
/// Returns the hooks of all intrinsics of a kernel, each once. Throws InternalError [machine_hook] if one is
/// missing, or the CPU lacks a required feature.
std::vector<const IntrinsicHook*> hooks_of(const kernel::Kernel& kernel, const TargetCpu& target);
/// The hooks of all operations that this back end supports.
std::span<const std::span<const IntrinsicHook>> intrinsic_hooks();

}  // namespace lathe::codegen
