#include "codegen/llvm/out_of_memory.h"

#include <llvm/Support/ErrorHandling.h>

#include <new>

namespace lathe::codegen {

void set_out_of_memory_handler(void (*handler)()) {
  const auto call = [](void* data, const char*, bool) { reinterpret_cast<void (*)()>(data)(); };
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(call, reinterpret_cast<void*>(handler));
  std::set_new_handler(handler);
}

}  // namespace lathe::codegen
