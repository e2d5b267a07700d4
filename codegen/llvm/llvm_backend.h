#pragma once

#include <memory>
#include <string>

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/llvm/target_cpu.h"

namespace lathe::codegen {

/// Compiles modules to machine code for one target. Not thread-safe: create one per thread.
class Backend {
 public:
  explicit Backend(const TargetCpu& target);
  ~Backend();

  /// Returns a module with the target's triple and data layout.
  std::unique_ptr<llvm::Module> create_module(llvm::LLVMContext& context, const std::string& name) const;
  void optimise(llvm::Module& module) const;
  std::string object(llvm::Module& module);
  std::string assembly(llvm::Module& module) const;

 private:
  class Generator;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Generator> to_objects_;  ///< cached: setting up its passes takes longer than compiling a small
                                           ///< kernel
};

/// Identifies the passes and code generation options in cache keys.
std::string_view pipeline_version();

}  // namespace lathe::codegen
