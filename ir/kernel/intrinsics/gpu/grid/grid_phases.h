#pragma once

#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/phases.h"

/// The operations of kernels of phases. Such a kernel has no other statements, and its blocks are all resident
/// (codegen/cuda/mapping.h).
namespace lathe::kernel {

class IntrinsicRun;

/// Runs all blocks of another kernel. The blocks of the grid share them: a block runs one or several at a time, until
/// none is left. A block starts the next phase without waiting for the others, unless a grid_barrier precedes it, or
/// it loads an awaited element that has not been written.
struct RunPhase {
  KernelPhase phase;

  static RunPhase of(const Instruction& in) { return {phase_of(in)}; }
  Instruction instruction() const;
  /// Checks the arguments (phase_arguments), that the kernel has only operations of this file (phase_context), and
  /// that no phase since the last grid_barrier writes what this one accesses, or accesses what this one writes
  /// (grid_race), unless this one awaits what that one writes. Awaited elements have been cleared before an earlier
  /// barrier, and exactly one phase writes them (phase_awaits).
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static RunPhase parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& thread) const;
};
extern const IntrinsicRecord run_phase_record;

/// A barrier of all threads of all blocks of a launch: writes of any thread to parameters before it are visible to
/// every thread after it.
struct GridBarrier {
  static GridBarrier of(const Instruction&) { return {}; }
  Instruction instruction() const;
  /// Requires a kernel of phases (phase_context).
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static GridBarrier parse(IntrinsicReader& in);
  /// Does nothing: phases run one after the other.
  void interpret(const IntrinsicRun& run, ValueId id, Thread& thread) const;
};
extern const IntrinsicRecord grid_barrier_record;

/// Marks the elements [0, count) of a parameter of floats as not written: all their bits are set, which is a NaN that
/// awaited stores never write. After the next grid_barrier, a phase may write the elements, and later ones await
/// them.
struct GridClear {
  BufferId cleared = none;
  ValueId count = none;  ///< a number or a dim

  static GridClear of(const Instruction& in) { return {in.machine->buffers[0].id, in.args[0]}; }
  Instruction instruction() const;
  /// Requires a kernel of phases (phase_context), and a parameter of floats that no phase since the last grid_barrier
  /// accesses (grid_race).
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static GridClear parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& thread) const;
};
extern const IntrinsicRecord grid_clear_record;

/// Prefetches elements [first, first + count) of a parameter that no phase writes into L2, before a grid barrier or a
/// phase. Each block of the grid prefetches its share, after it has arrived at the barrier and before it waits.
/// Changes no value.
struct GridPrefetch {
  BufferId from = none;
  ValueId first = none, count = none;  ///< numbers

  static GridPrefetch of(const Instruction& in) { return {in.machine->buffers[0].id, in.args[0], in.args[1]}; }
  Instruction instruction() const;
  /// Requires a kernel of phases (phase_context), a parameter that it only reads, and that a grid_barrier or a phase
  /// follows, after other prefetches at most (grid_prefetch).
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static GridPrefetch parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& thread) const;
};
extern const IntrinsicRecord grid_prefetch_record;

/// Prefetches elements [first + i * stride, first + i * stride + count) of a parameter for each i in [0, rows), like
/// GridPrefetch, but at most `most` elements of all rows together, and as many of each row. Sizes may be dims: the
/// rows in use of a cache. Phases may write the parameter: a prefetch reads no value.
struct GridPrefetchRows {
  BufferId from = none;
  ValueId first = none, count = none, rows = none, stride = none;  ///< numbers or dims
  std::int64_t most = 0;

  static GridPrefetchRows of(const Instruction& in) {
    return {in.machine->buffers[0].id, in.args[0], in.args[1], in.args[2], in.args[3], in.machine->attributes[0]};
  }
  Instruction instruction() const;
  /// Requires a kernel of phases (phase_context), a parameter and numbers or dims, and what GridPrefetch requires of
  /// its place (grid_prefetch).
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static GridPrefetchRows parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& thread) const;
};
extern const IntrinsicRecord grid_prefetch_rows_record;

inline bool is_grid_prefetch(const IntrinsicRecord* record) {
  return record == &grid_prefetch_record || record == &grid_prefetch_rows_record;
}

}  // namespace lathe::kernel
