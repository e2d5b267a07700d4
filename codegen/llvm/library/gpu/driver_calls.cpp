#include "codegen/llvm/library/gpu/driver_calls.h"

namespace lathe::codegen {

llvm::Value* driver_functions(llvm::IRBuilder<>& b, llvm::Value* library) {
  return b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getInt64Ty(), library, GpuInstanceLayout::driver));
}

llvm::Value* call_driver(llvm::IRBuilder<>& b, llvm::Value* functions, DriverFunction which,
                         llvm::ArrayRef<llvm::Value*> arguments) {
  std::vector<llvm::Type*> types;
  for (llvm::Value* const argument : arguments) types.push_back(argument->getType());
  auto* const type = llvm::FunctionType::get(b.getInt32Ty(), types, false);
  llvm::Value* const at = b.CreateConstGEP1_64(b.getInt64Ty(), functions, static_cast<std::uint64_t>(which));
  return b.CreateNeg(b.CreateCall(type, b.CreateLoad(b.getPtrTy(), at), arguments));
}

}  // namespace lathe::codegen
