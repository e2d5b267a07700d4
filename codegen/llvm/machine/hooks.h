#pragma once

#include <llvm/IR/IRBuilder.h>

#include <span>
#include <string_view>
#include <vector>

#include "codegen/llvm/scalar_ops.h"
#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/machine/record.h"

/// How machine operations become LLVM IR: a file of hooks for each family of them, and one table.
namespace lathe::codegen {

/// The kernel that is emitted, where an instruction stands.
class KernelCode {
 public:
  virtual ~KernelCode() = default;
  virtual llvm::IRBuilder<>& builder() = 0;
  virtual ScalarOps& scalars() = 0;
  virtual llvm::Value* value(kernel::ValueId id) const = 0;
  /// The address of buffer[index].
  virtual llvm::Value* address(kernel::BufferId buffer, kernel::ValueId index) = 0;
};

struct MachineHook {
  const kernel::MachineRecord* record;
  /// The value that the operation gives, or null.
  llvm::Value* (*emit)(const kernel::Instruction& in, KernelCode& kernel);
  /// What the CPU lacks to run it, or nothing; null where every CPU runs it.
  std::string_view (*lacks)(const TargetCpu& target) = nullptr;
  /// Code at the start and at the end of a function with such an operation; null where it needs none.
  void (*enter)(llvm::IRBuilder<>& builder) = nullptr;
  void (*leave)(llvm::IRBuilder<>& builder) = nullptr;
};

/// The hook of a machine operation. InternalError [machine_hook] where there is none.
const MachineHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in);
/// The hooks of all machine operations of a kernel, each once. InternalError [machine_hook] also where the CPU lacks
/// what one needs.
std::vector<const MachineHook*> hooks_of(const kernel::Kernel& kernel, const TargetCpu& target);
/// Of all operations that this back end has code for.
std::span<const std::span<const MachineHook>> machine_hooks();

}  // namespace lathe::codegen
