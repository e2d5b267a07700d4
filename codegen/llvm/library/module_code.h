#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <concepts>
#include <map>
#include <string>
#include <vector>

#include "codegen/llvm/library/call_layout.h"
#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// Emits instructions that drivers and interface functions share.
class ModuleCode {
 public:
  using Value = llvm::Value;

  ModuleCode(llvm::Module& module, const Library& library)
      : module_(module), library_(library), b_(module.getContext()) {}

 protected:
  llvm::IntegerType* i32() { return b_.getInt32Ty(); }
  llvm::IntegerType* i64() { return b_.getInt64Ty(); }
  llvm::Type* ptr() { return b_.getPtrTy(); }
  llvm::ConstantInt* number(std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); }
  llvm::ConstantInt* number32(std::int64_t value) { return b_.getInt32(static_cast<std::uint32_t>(value)); }
  llvm::ConstantInt* error(int which) { return b_.getInt32(static_cast<std::uint32_t>(which)); }
  llvm::ConstantInt* success() { return error(static_cast<int>(LibraryError::none)); }

  /// Starts a function, at its first block. Functions of the interface are visible to the program, others are not.
  /// `names` are those of the arguments, for IR.
  llvm::Function* start(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> arguments,
                        llvm::GlobalValue::LinkageTypes linkage, std::initializer_list<const char*> names = {});
  llvm::BasicBlock* block(const std::string& name);
  /// Returns a block that returns an error.
  llvm::BasicBlock* returning(int which);
  llvm::BasicBlock* returning(LibraryError error) { return returning(static_cast<int>(error)); }
  /// Continues in a new block if the condition holds; otherwise branches to `other`.
  void require(Value* condition, llvm::BasicBlock* other);
  /// Returns from the function with an error unless it is 0.
  void return_unless_none(Value* status);
  /// Emits a loop over i in [0, count).
  void repeat(Value* count, llvm::function_ref<void(Value* i)> body);
  /// Emits a loop that continues while a condition holds.
  void repeat_while(llvm::function_ref<Value*()> condition, llvm::function_ref<void()> body);
  /// Emits code that runs if the condition holds, and continues after it.
  void when(Value* condition, llvm::function_ref<void()> then);

  Value* word(Value* base, Value* index) { return b_.CreateGEP(i64(), base, index); }
  Value* word(Value* base, std::int64_t index) { return word(base, number(index)); }
  Value* load_word(Value* base, Value* index) { return b_.CreateLoad(i64(), word(base, index)); }
  Value* load_word(Value* base, std::integral auto index) { return load_word(base, number(index)); }
  Value* load_pointer(Value* base, std::int64_t index) { return b_.CreateLoad(ptr(), word(base, index)); }
  Value* byte(Value* base, Value* offset) { return b_.CreateGEP(b_.getInt8Ty(), base, offset); }
  Value* at_least(Value* value, std::int64_t least) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, number(least));
  }

  /// Returns the memory of a tensor in a call.
  Value* memory_of(const LibraryTensor& tensor, Value* call, const CallLayout& layout);

  /// Reads the dims of a call and forgets the sizes of earlier ones.
  void bind_dims(Value* dims);
  /// Returns a size under those dims. Call it in the first block of a function, so that all others can use it.
  Value* size(const LibrarySize& size);

  /// Returns a constant in memory, the same for equal bytes.
  llvm::Constant* bytes(const std::string& data, const std::string& name, llvm::Align alignment = llvm::Align(1));
  llvm::Constant* text(const std::string& text, const std::string& name) { return bytes(text + '\0', name); }

  llvm::Module& module_;
  const Library& library_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;

 private:
  std::vector<Value*> dims_;
  std::map<LibrarySize, Value*> sizes_;
  std::map<std::string, llvm::GlobalVariable*> constants_;  ///< by their bytes
};

/// Emits a store of the processor's floating-point control word to `slot`, then sets IEEE 754's default: round to
/// nearest, subnormals kept, nothing trapped.
void enter_float_environment(llvm::IRBuilder<>& b, llvm::Value* slot);
/// Restores the control word.
void leave_float_environment(llvm::IRBuilder<>& b, llvm::Value* slot);

}  // namespace lathe::codegen
