#pragma once

#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

/// Emits functions that draw initial values: the same numbers, to the bit, as frontend/initial_values.h.
class InitialValueEmitter : public ModuleCode {
 public:
  InitialValueEmitter(llvm::Module& module, const Library& library) : ModuleCode(module, library) {}

  /// Returns void (ptr values, i64 elements, i64 seed, i64 fan_in), which sets all elements of a state.
  llvm::Function* function(const LibraryTensor& state, const LibraryInitial& initial);

 private:
  /// Two uniform random numbers in [0, 1).
  struct Draw {
    Value *first, *second;
  };
  Draw draw(Value* element, Value* seed, std::uint64_t stream);
  Value* random_number(const LibraryInitial& initial, Value* element, Value* seed, Value* deviation);
  Value* deviation(const LibraryInitial& initial, Value* fan_in);

  int functions_ = 0;
};

}  // namespace lathe::codegen
