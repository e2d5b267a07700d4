#include "codegen/llvm/library/argument_checks.h"

#include <fmt/core.h>

namespace lathe::codegen {

ArgumentChecks::ArgumentChecks(llvm::Module& module, const Library& library) : ModuleCode(module, library) {
  emit_find_overlap();
  emit_check_memory();
}

llvm::Value* ArgumentChecks::field(Value* rows, Value* i, RangeField which) {
  Value* row = word(rows, b_.CreateMul(i, number(static_cast<int>(RangeField::count))));
  return load_word(row, static_cast<int>(which));
}

/// Emits a shell sort of `order`, the numbers of ranges, by their keys.
void ArgumentChecks::emit_sort(Value* order, Value* keys, Value* count) {
  llvm::AllocaInst *gap_at = b_.CreateAlloca(i64(), nullptr, "gap"), *to_at = b_.CreateAlloca(i64(), nullptr, "to");
  repeat(count, [&](Value* i) { b_.CreateStore(i, word(order, i)); });
  b_.CreateStore(b_.CreateLShr(count, 1), gap_at);
  const auto gap = [&] { return b_.CreateLoad(i64(), gap_at); };
  const auto to = [&] { return b_.CreateLoad(i64(), to_at); };
  repeat_while([&] { return b_.CreateICmpSGT(gap(), number(0)); },
               [&] {
                 repeat(b_.CreateSub(count, gap()), [&](Value* i) {
                   b_.CreateStore(b_.CreateAdd(i, gap()), to_at);
                   Value *moved = load_word(order, to()), *key = load_word(keys, moved);
                   const auto before = [&] { return b_.CreateSub(to(), gap()); };
                   repeat_while(
                       [&] {
                         Value* is_inside = b_.CreateICmpSGE(before(), number(0));
                         Value* from = load_word(order, b_.CreateSelect(is_inside, before(), number(0)));
                         return b_.CreateAnd(is_inside, b_.CreateICmpUGT(load_word(keys, from), key));
                       },
                       [&] {
                         b_.CreateStore(load_word(order, before()), word(order, to()));
                         b_.CreateStore(before(), to_at);
                       });
                   b_.CreateStore(moved, word(order, to()));
                 });
                 b_.CreateStore(b_.CreateLShr(gap(), 1), gap_at);
               });
}

/// i1 (ptr starts, ptr ends, ptr rows, i64 count): whether two ranges overlap of which one is written. In the order
/// of their starts, a range overlaps with an earlier one if it starts before the largest end.
void ArgumentChecks::emit_find_overlap() {
  find_overlap_ = start(library_.prefix + "_find_overlap", b_.getInt1Ty(), {ptr(), ptr(), ptr(), i64()},
                        llvm::GlobalValue::InternalLinkage, {"starts", "ends", "rows", "count"});
  Value *starts = find_overlap_->getArg(0), *ends = find_overlap_->getArg(1), *rows = find_overlap_->getArg(2),
        *count = find_overlap_->getArg(3);
  Value* order = b_.CreateAlloca(i64(), count, "order");
  llvm::AllocaInst *end_at = b_.CreateAlloca(i64(), nullptr, "end"),
                   *written_end_at = b_.CreateAlloca(i64(), nullptr, "written_end");
  for (llvm::AllocaInst* const end : {end_at, written_end_at}) b_.CreateStore(number(0), end);
  emit_sort(order, starts, count);
  llvm::BasicBlock* found = block("found");
  const auto extend = [&](llvm::AllocaInst* to, Value* end) {
    b_.CreateStore(b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b_.CreateLoad(i64(), to), end), to);
  };
  repeat(count, [&](Value* i) {
    Value* range = load_word(order, i);
    Value *first = load_word(starts, range), *end = load_word(ends, range);
    when(b_.CreateICmpNE(first, end), [&] {
      Value* is_written = b_.CreateICmpNE(field(rows, range, RangeField::is_written), number(0));
      Value* taken = b_.CreateSelect(is_written, b_.CreateLoad(i64(), end_at), b_.CreateLoad(i64(), written_end_at));
      require(b_.CreateICmpUGE(first, taken), found);
      extend(end_at, end);
      when(is_written, [&] { extend(written_end_at, end); });
    });
  });
  b_.CreateRet(b_.getFalse());
  b_.SetInsertPoint(found);
  b_.CreateRet(b_.getTrue());
}

/// i32 (ptr starts, ptr ends, ptr rows, i64 count)
void ArgumentChecks::emit_check_memory() {
  check_memory_ = start(library_.prefix + "_check_memory", b_.getInt32Ty(), {ptr(), ptr(), ptr(), i64()},
                        llvm::GlobalValue::InternalLinkage, {"starts", "ends", "rows", "count"});
  Value *starts = check_memory_->getArg(0), *ends = check_memory_->getArg(1), *rows = check_memory_->getArg(2),
        *count = check_memory_->getArg(3);
  llvm::AllocaInst* found = b_.CreateAlloca(i64(), nullptr, "error");
  llvm::BasicBlock* failed = block("failed");
  const auto is_empty = [&](Value* i) { return b_.CreateICmpEQ(load_word(starts, i), load_word(ends, i)); };
  const auto require_or = [&](Value* condition, Value* i, int offset) {
    b_.CreateStore(b_.CreateAdd(field(rows, i, RangeField::error), number(offset)), found);
    require(condition, failed);
  };
  repeat(count, [&](Value* i) {
    when(b_.CreateNot(is_empty(i)), [&] {
      require_or(b_.CreateICmpNE(load_word(starts, i), number(0)), i, 0);
      Value* rest = b_.CreateAnd(load_word(starts, i), field(rows, i, RangeField::alignment_mask));
      require_or(b_.CreateICmpEQ(rest, number(0)), i, 1);
    });
  });
  // Finds the first written range that overlaps with another, in quadratic time.
  when(b_.CreateCall(find_overlap_, {starts, ends, rows, count}), [&] {
    repeat(count, [&](Value* i) {
      when(b_.CreateICmpNE(field(rows, i, RangeField::is_written), number(0)), [&] {
        repeat(count, [&](Value* j) {
          Value* meets = b_.CreateAnd(b_.CreateICmpULT(load_word(starts, i), load_word(ends, j)),
                                      b_.CreateICmpULT(load_word(starts, j), load_word(ends, i)));
          Value* is_apart = b_.CreateOr({b_.CreateICmpEQ(i, j), b_.CreateNot(meets), is_empty(i), is_empty(j)});
          require_or(is_apart, i, 2);
        });
      });
    });
  });
  b_.CreateRet(success());
  b_.SetInsertPoint(failed);
  b_.CreateRet(b_.CreateTrunc(b_.CreateLoad(i64(), found), b_.getInt32Ty()));
}

void ArgumentChecks::check_dims() {
  for (std::size_t i = 0; i < library_.dims.size(); ++i) {
    Value* given = size({{{1, {static_cast<int>(i)}}}});
    // As unsigned numbers, negative ones are large.
    require(b_.CreateICmpULE(given, number(library_.dims[i].most)), returning(library_.dims[i].error));
  }
}

void ArgumentChecks::check_relation(const LibraryCheck& check) {
  Value *left = size(check.left), *right = size(check.right);
  require(check.is_equality ? b_.CreateICmpEQ(left, right) : b_.CreateICmpSLE(left, right), returning(check.error));
}

ArgumentChecks::Range ArgumentChecks::range_of(const LibraryTensor& tensor, Value* start) {
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
  Value* all = b_.CreateMul(size(tensor.elements), number(bytes));
  return {start, all, tensor.alignment, tensor.is_written, tensor.error};
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

llvm::Function* ArgumentChecks::of_dims() {
  llvm::Function* check = start(library_.prefix + "_check_dims", i32(), {ptr()}, llvm::GlobalValue::InternalLinkage);
  bind_dims(check->getArg(0));
  check_dims();
  b_.CreateRet(success());
  return check;
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
  for (const LibraryTensor& tensor : entry.tensors)
    ranges.push_back(range_of(tensor, memory_of(tensor, call, layout)));
  ranges.push_back({load_pointer(call, layout.workspace), load_word(call, layout.workspace_bytes()), 1, true,
                    entry.workspace_error - 1});
  return_memory_error(ranges);
  return check;
}

}  // namespace lathe::codegen
