#pragma once

#include <span>
#include <utility>
#include <vector>

#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

/// Emits functions that check the dims and the memory of a call. They return an error: the first dim that is out of
/// range, then the first relation between dims that does not hold, then the first tensor whose memory is missing,
/// misaligned, or overlaps with other memory while one of both is written.
class ArgumentChecks : public ModuleCode {
 public:
  ArgumentChecks(llvm::Module& module, const Library& library);

  /// Returns i32 (ptr dims).
  llvm::Function* of_dims();
  /// Returns i32 (ptr dims, ptr states).
  llvm::Function* of_states();
  /// Returns i32 (ptr call). The workspace has its size, and the states are not null.
  llvm::Function* of_call(const LibraryEntry& entry);

 private:
  /// The words that describe a range in a table of constants.
  enum class RangeField : int { alignment_mask, is_written, error, count };
  /// A range of memory of the caller.
  struct Range {
    Value *start, *bytes;
    std::int64_t alignment;
    bool is_written;
    int error;
  };
  void check_dims();
  void check_relation(const LibraryCheck& check);
  void return_memory_error(std::span<const Range> ranges);
  Range range_of(const LibraryTensor& tensor, Value* start);
  void emit_check_memory();
  void emit_find_overlap();
  void emit_sort(Value* order, Value* keys, Value* count);
  Value* field(Value* rows, Value* i, RangeField which);

  llvm::Function *check_memory_ = nullptr, *find_overlap_ = nullptr;
};

}  // namespace lathe::codegen
