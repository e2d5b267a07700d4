#include "codegen/llvm/library/argument_checks.h"

#include <fmt/core.h>

namespace lathe::codegen {

namespace {

/// A row of the table that describes the ranges of a call, in words.
enum class RangeRow : int { alignment_mask, is_written, error, words };

}  // namespace

ArgumentChecks::ArgumentChecks(llvm::Module& module, const Library& library) : ModuleCode(module, library) {
  emit_check_memory();
}

/// i32 (ptr starts, ptr ends, ptr rows, i64 count)
void ArgumentChecks::emit_check_memory() {
  check_memory_ = start(library_.prefix + "_check_memory", b_.getInt32Ty(), {ptr(), ptr(), ptr(), i64()},
                        llvm::GlobalValue::InternalLinkage);
  Value *starts = check_memory_->getArg(0), *ends = check_memory_->getArg(1), *rows = check_memory_->getArg(2),
        *count = check_memory_->getArg(3);
  llvm::AllocaInst* found = b_.CreateAlloca(i64(), nullptr, "error");
  llvm::BasicBlock* failed = block("failed");
  const auto at = [&](Value* array, Value* i) { return b_.CreateLoad(i64(), word(array, i)); };
  const auto field = [&](Value* i, RangeRow which) {
    Value* row = word(rows, b_.CreateMul(i, number(static_cast<int>(RangeRow::words))));
    return load_word(row, static_cast<int>(which));
  };
  const auto require_or = [&](Value* condition, Value* i, int offset) {
    b_.CreateStore(b_.CreateAdd(field(i, RangeRow::error), number(offset)), found);
    require(condition, failed);
  };
  repeat(count, [&](Value* i) {
    when(b_.CreateICmpNE(at(starts, i), at(ends, i)), [&] {
      require_or(b_.CreateICmpNE(at(starts, i), number(0)), i, 0);
      Value* rest = b_.CreateAnd(at(starts, i), field(i, RangeRow::alignment_mask));
      require_or(b_.CreateICmpEQ(rest, number(0)), i, 1);
    });
  });
  repeat(count, [&](Value* i) {
    when(b_.CreateICmpNE(field(i, RangeRow::is_written), number(0)), [&] {
      repeat(count, [&](Value* j) {
        Value* meets =
            b_.CreateAnd(b_.CreateICmpULT(at(starts, i), at(ends, j)), b_.CreateICmpULT(at(starts, j), at(ends, i)));
        require_or(b_.CreateOr(b_.CreateICmpEQ(i, j), b_.CreateNot(meets)), i, 2);
      });
    });
  });
  b_.CreateRet(error(LibraryError::none));
  b_.SetInsertPoint(failed);
  b_.CreateRet(b_.CreateTrunc(b_.CreateLoad(i64(), found), b_.getInt32Ty()));
}

void ArgumentChecks::check_dims() {
  for (const LibraryDim& dim : library_.dims) {
    llvm::BasicBlock *failed = block("failed"), *next = block("next");
    Value* given = size({{{1, {static_cast<int>(&dim - library_.dims.data())}}}});
    // As unsigned numbers, negative ones are large.
    b_.CreateCondBr(b_.CreateICmpULE(given, number(dim.most)), next, failed);
    b_.SetInsertPoint(failed);
    b_.CreateRet(b_.getInt32(static_cast<std::uint32_t>(dim.error)));
    b_.SetInsertPoint(next);
  }
}

void ArgumentChecks::check_relation(const LibraryCheck& check) {
  llvm::BasicBlock *failed = block("failed"), *next = block("next");
  Value *left = size(check.left), *right = size(check.right);
  b_.CreateCondBr(check.is_equality ? b_.CreateICmpEQ(left, right) : b_.CreateICmpSLE(left, right), next, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(b_.getInt32(static_cast<std::uint32_t>(check.error)));
  b_.SetInsertPoint(next);
}

ArgumentChecks::Range ArgumentChecks::range_of(const LibraryTensor& tensor, Value* start) {
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
  const std::int64_t alignment = is_complex(tensor.dtype) ? bytes / 2 : bytes;
  return {start, b_.CreateMul(size(tensor.elements), number(bytes)), alignment, tensor.is_written, tensor.error};
}

void ArgumentChecks::return_memory_error(std::span<const Range> ranges) {
  const auto count = static_cast<std::int64_t>(ranges.size());
  llvm::AllocaInst *starts = b_.CreateAlloca(i64(), number(count), "starts"),
                   *ends = b_.CreateAlloca(i64(), number(count), "ends");
  std::string rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const Range& range = ranges[static_cast<std::size_t>(i)];
    Value* start = b_.CreatePtrToInt(range.start, i64());
    b_.CreateStore(start, word(starts, i));
    b_.CreateStore(b_.CreateAdd(start, range.bytes), word(ends, i));
    for (const std::int64_t value : {range.alignment - 1, std::int64_t{range.is_written}, std::int64_t{range.error}})
      rows.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  b_.CreateRet(b_.CreateCall(check_memory_, {starts, ends, bytes(rows, "ranges", llvm::Align(8)), number(count)}));
}

llvm::Function* ArgumentChecks::of_states() {
  llvm::Function* check =
      start(library_.prefix + "_check_states", b_.getInt32Ty(), {ptr(), ptr()}, llvm::GlobalValue::InternalLinkage);
  bind_dims(check->getArg(0));
  check_dims();
  std::vector<Range> ranges;
  for (const LibraryTensor& state : library_.states) {
    ranges.push_back(range_of(state, load_pointer(check->getArg(1), state.slot)));
    ranges.back().is_written = true;
  }
  return_memory_error(ranges);
  return check;
}

llvm::Function* ArgumentChecks::of_call(const LibraryEntry& entry) {
  llvm::Function* check = start(library_.prefix + entry.name + "_check_arguments", b_.getInt32Ty(), {ptr()},
                                llvm::GlobalValue::InternalLinkage);
  Value* call = check->getArg(0);
  const CallLayout layout(library_, entry);
  bind_dims(word(call, layout.dims));
  check_dims();
  for (const LibraryCheck& relation : entry.checks) check_relation(relation);
  std::vector<Range> ranges;
  for (const LibraryTensor& tensor : entry.tensors) {
    Value* base = call;
    std::int64_t at = tensor.slot;
    if (tensor.role == LibraryTensor::Role::input) at += layout.inputs;
    if (tensor.role == LibraryTensor::Role::output) at += layout.outputs;
    if (tensor.role == LibraryTensor::Role::state) base = load_pointer(call, layout.states);
    ranges.push_back(range_of(tensor, load_pointer(base, at)));
  }
  ranges.push_back({load_pointer(call, layout.workspace), load_word(call, layout.workspace_bytes()), 1, true,
                    entry.workspace_error - 1});
  return_memory_error(ranges);
  return check;
}

}  // namespace lathe::codegen
