#pragma once

#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

/// The record of a launch, in words: written by a driver before the first launch, and read by workers.
enum class LaunchRecord : int {
  run,         ///< KernelFn
  buffers,     ///< its arguments; slices are set before each iteration of their loop
  dims,        ///< its dims
  strides,     ///< bytes between the memory of two workers, by buffer; null: no buffer is scratch
  count,       ///< of buffers
  iterations,  ///< of its parallel loop
  grain,       ///< iterations per chunk
  chunks,
  work,  ///< scalar operations, with a limit
  words,
};

/// The functions with which drivers of a level prepare and run launches. They implement the same division of work as
/// the runtime's CpuRunner, so that results have the same bits.
class LaunchFunctions : public ModuleCode {
 public:
  LaunchFunctions(llvm::Module& module, const Library& library, const std::string& prefix);

  /// void (ptr record, ptr extent, i1 is_run, i64 work, i64 bytes): sets the last four words of a record.
  llvm::Function* prepare() const { return prepare_; }
  /// i64 (ptr records, i64 count, i1 are_parts, ptr workers): runs launches that are independent of each other.
  /// Returns the lowest status word that is not 0, of the launch that failed.
  llvm::Function* run_group() const { return run_group_; }

 private:
  Value* field(Value* record, LaunchRecord which) { return load_word(record, static_cast<int>(which)); }
  Value* field_pointer(Value* record, LaunchRecord which) { return load_pointer(record, static_cast<int>(which)); }
  Value* record(Value* records, Value* index) {
    return word(records, b_.CreateMul(index, number(static_cast<int>(LaunchRecord::words))));
  }
  Value* divide_up(Value* a, Value* b) { return b_.CreateSDiv(b_.CreateSub(b_.CreateAdd(a, b), number(1)), b); }
  Value* grain(Value* extent, Value* work);
  void emit_prepare();
  void emit_run_chunk();
  void emit_task();
  void emit_in_parallel();
  void emit_in_sequence();
  void emit_run_group();

  std::string prefix_;
  llvm::Function *prepare_ = nullptr, *run_chunk_ = nullptr, *task_ = nullptr, *in_parallel_ = nullptr,
                 *in_sequence_ = nullptr, *run_group_ = nullptr;
};

}  // namespace lathe::codegen
