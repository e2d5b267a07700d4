#pragma once

#include <llvm/IR/Module.h>

#include <span>
#include <string>
#include <vector>

#include "codegen/llvm/library/argument_checks.h"
#include "codegen/llvm/library/initial_value_emitter.h"
#include "codegen/llvm/library/module_code.h"
#include "codegen/llvm/library/workspace_layout.h"

namespace lathe::codegen {

/// Emits the functions that a library's header declares, the part that CPUs and GPUs share:
///
///   i32 <init>(ptr library, <machine>, ptr dims, ptr states, i64 seed)
///   i64 <prefix>_workspace_bytes(ptr library, <workers>)
///   i32 <prefix><entry>_check(ptr library, ptr call)     for each graph
///   ptr <prefix>_message(i32 error)
///   ptr <prefix>_describe()
///   ptr <prefix>_file_header(ptr bytes)                  of libraries with states
///
/// Functions return 0 or the number of an error. `dims` is absent without dims, `states` and `seed` without states.
class InterfaceEmitter : public ModuleCode {
 public:
  InterfaceEmitter(llvm::Module& module, const Library& library)
      : ModuleCode(module, library), checks_(module, library), values_(module, library) {}
  virtual ~InterfaceEmitter() = default;

  void emit();

 protected:
  /// Returns the types of the arguments of init between the library and the dims.
  virtual std::vector<llvm::Type*> machine_types() { return {}; }
  /// Returns the level that the machine supports, in init, which returns an error if there is none.
  virtual Value* choose_level(llvm::Function* init) = 0;
  /// Emits the end of init, for a level.
  virtual void prepare(llvm::Function* /*init*/, Value* /*level*/) {}
  /// Returns the number of workers of a call of a graph in its check, which returns an error for bad ones.
  virtual Value* workers(const LibraryEntry& entry, Value* call) = 0;
  virtual WorkspaceSize workspace_size(const LibraryProgram& program) const = 0;
  /// Emits the functions that run a graph.
  virtual void emit_run(const LibraryEntry& entry) = 0;
  /// Emits functions that only libraries of this kind have.
  virtual void emit_rest() {}
  /// Returns the message of an error that is none of Library::messages.
  virtual Value* other_message(Value* error);

  Value* half_word(Value* base, InstanceLayout which) {
    return b_.CreateConstGEP1_64(b_.getInt32Ty(), base, static_cast<std::uint64_t>(which));
  }
  llvm::Function* start_external(const std::string& suffix, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> arguments);
  /// Returns the level of an initialised library as i64: 0 is the lowest.
  Value* level(Value* instance, llvm::BasicBlock* otherwise);
  /// Returns the result of a function of the level's module: for each level, `symbol_of` has its symbol.
  void return_from_level(Value* level, llvm::function_ref<std::string(std::size_t)> symbol_of,
                         llvm::ArrayRef<Value*> arguments);
  llvm::Function* check_of(const LibraryEntry& entry) {
    return module_.getFunction(library_.prefix + entry.name + "_check");
  }

  ArgumentChecks checks_;

 private:
  Value* workspace_bytes(Value* level, Value* workers, std::span<const LibraryEntry> entries);
  void emit_init();
  void emit_workspace_bytes();
  void emit_check(const LibraryEntry& entry);
  void emit_message();

  InitialValueEmitter values_;
};

}  // namespace lathe::codegen
