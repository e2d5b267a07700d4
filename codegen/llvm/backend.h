#pragma once

#include <memory>
#include <string>

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/llvm/target_cpu.h"

namespace lathe::codegen {

/// Turns modules into machine code for one target. Not for use by two threads at once: each makes its own.
class Backend {
 public:
  explicit Backend(const TargetCpu& target);
  ~Backend();

  /// A module with the target's triple and data layout.
  std::unique_ptr<llvm::Module> create_module(llvm::LLVMContext& context, const std::string& name) const;
  void optimise(llvm::Module& module) const;
  std::string object(llvm::Module& module);
  std::string assembly(llvm::Module& module) const;

 private:
  class Generator;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Generator> to_objects_;  ///< kept: setting its passes up takes longer than a small kernel
};

/// Names the passes and code generation options, as part of cache keys.
std::string_view pipeline_version();

}  // namespace lathe::codegen
