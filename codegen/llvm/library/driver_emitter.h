#pragma once

#include <string>
#include <vector>

#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

/// Returns the symbol of the driver of an entry for a level.
std::string driver_symbol(const Library& library, std::size_t level, const LibraryEntry& entry);

/// Emits the drivers of a level, one function per graph: the part that CPUs and GPUs share. A driver finds the memory
/// of all buffers, evaluates sizes under the dims of the call, and runs the launches in order, with loops around
/// them. Arguments are valid: the function that the header declares checks them first. It returns an error.
class DriverEmitter : public ModuleCode {
 public:
  DriverEmitter(llvm::Module& module, const Library& library, std::size_t level)
      : ModuleCode(module, library), level_(level) {}
  virtual ~DriverEmitter() = default;

  void emit(const LibraryEntry& entry);

 protected:
  /// Starts the function, and returns its argument that points to the call.
  virtual Value* start_driver(const std::string& symbol) = 0;
  /// Returns where a buffer of the kind starts.
  virtual Value* constant(const LibraryBuffer& buffer) = 0;
  virtual Value* embedded(const LibraryBuffer& buffer) = 0;
  virtual Value* scratch(const LibraryBuffer& buffer) = 0;
  /// Emits code before the first launch, after the buffers have their places.
  virtual void begin() = 0;
  /// Emits code before each return.
  virtual void leave() {}
  /// Emits code after a slice of a loop has moved to the place of an iteration, where_[buffer].
  virtual void moved(const LibraryLoop&, int /*buffer*/) {}
  virtual void run_group(const LibraryGroup& group) = 0;

  /// Starts a function that other modules of the library call, and no program does.
  llvm::Function* start_hidden(const std::string& symbol, llvm::ArrayRef<llvm::Type*> arguments,
                               std::initializer_list<const char*> names);
  /// Continues if a status is 0; otherwise the driver returns the error that `error_of` emits.
  void fail_unless_none(Value* status, llvm::function_ref<Value*()> error_of);
  /// Returns whether the condition of a launch holds and it writes anything, at the sizes of the call.
  Value* is_run(const LibraryLaunch& launch);

  std::size_t level_;
  const LibraryEntry* entry_ = nullptr;
  const LibraryProgram* program_ = nullptr;
  Value *call_ = nullptr, *workspace_ = nullptr;  ///< the workspace is aligned
  std::vector<Value*> where_;                     ///< by buffer; null before its loop for a slice
  std::vector<Value*> trips_;                     ///< by loop

 private:
  /// A loop of the program whose body is emitted.
  struct OpenLoop {
    int number;
    llvm::PHINode* iteration;
    llvm::BasicBlock *head, *after;
  };

  void point_tensors();
  void begin_loop(int number);
  void end_loop();
  void point_slices(int loop, Value* iteration);

  std::vector<OpenLoop> open_;
  llvm::BasicBlock* fail_ = nullptr;
  llvm::PHINode* failure_ = nullptr;
};

}  // namespace lathe::codegen
