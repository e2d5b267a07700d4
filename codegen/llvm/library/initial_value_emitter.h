#pragma once

#include <map>
#include <string>
#include <tuple>

#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

/// Emits functions that draw initial values: the same numbers, to the bit, as frontend/initial_values.h.
class InitialValueEmitter : public ModuleCode {
 public:
  InitialValueEmitter(llvm::Module& module, const Library& library) : ModuleCode(module, library) {}

  /// Returns void (ptr values, i64 elements, i64 seed, i64 stream, i64 fan_in), which sets all elements of a state.
  /// States with the same distribution have the same function.
  llvm::Function* function(const LibraryTensor& state, const LibraryInitial& initial);

 private:
  /// Two uniform random numbers in [0, 1).
  struct Draw {
    Value *first, *second;
  };
  Draw draw(Value* element);
  Value* random_number(const LibraryInitial& initial, Value* element, Value* deviation);
  Value* deviation(const LibraryInitial& initial, Value* fan_in);

  Value *seed_ = nullptr, *stream_ = nullptr;  ///< of the current function
  std::map<std::tuple<LibraryInitial::Kind, DType, double, double, bool, std::string>, llvm::Function*> functions_;
};

}  // namespace lathe::codegen
