#pragma once

#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>

#include <string>

namespace lathe::codegen {

/// Adds a constant in memory to a module, which only the module can access. Its name starts with `name`.
llvm::GlobalVariable* add_constant(llvm::Module& module, llvm::Constant* value, const std::string& name = "constant");

}  // namespace lathe::codegen
