#include "codegen/llvm/emit/constant_data.h"

namespace lathe::codegen {

llvm::GlobalVariable* add_constant(llvm::Module& module, llvm::Constant* value, const std::string& name) {
  const std::string unique = name + "." + std::to_string(module.global_size());
  auto* global = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(unique, value->getType()));
  global->setInitializer(value);
  global->setConstant(true);
  global->setLinkage(llvm::GlobalValue::PrivateLinkage);
  return global;
}

}  // namespace lathe::codegen
