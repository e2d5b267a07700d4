#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/gpu/swizzled_tiles.h"
#include "ir/kernel/intrinsics/gpu/thread_sums.h"
#include "ir/kernel/intrinsics/record.h"

namespace lathe::kernel {

inline constexpr int wgmma_rows = 64, wgmma_columns = 128, wgmma_depth = 64;  ///< maximum columns and depth

/// Returns the position of sum `index` in the vector of thread `thread`, in the layout of wgmma.m64nNk16. The 128
/// threads of a warpgroup hold 64 rows of f32 sums; the position does not depend on the number of columns, up to 128.
/// Left operands held by threads have the same layout.
AccumulatorPosition wgmma_sum_position(int thread, int index);

/// Starts to add left * right^T, over `depth` elements (16 to 64), to a variable of f32 sums with right.rows / 2
/// lanes. The warpgroup holds 64 rows and right.rows columns (16, 32, 64 or 128) of sums (wgmma_sum_position). left
/// is one tile; right is one tile or two consecutive ones. An operand's rows are the rows of its tiles, or their
/// columns if transposed. Tiles start at multiples of 1024 bytes, uniform over the warpgroup.
///
/// The tiles were produced for the enclosing stage, stored before the pipeline, or stored by its consumers before a
/// barrier, and stay unchanged until the matmul is finished. Matmuls are added in order. Until a WaitSums of the
/// variable, only further matmuls may use it.
///
/// The left operand may instead be a bf16 or f16 value of depth / 2 lanes, in the layout of the sums. It may be
/// recomputed only after such a wait. A matmul of tiles with `starts` overwrites the sums instead of adding to them.
struct Wgmma {
  VarId sums = none;
  int depth = wgmma_depth;
  bool starts = false;
  SharedOperand left{}, right{};  ///< `left` is ignored if left_value is set
  ValueId left_value = none;

  static Wgmma of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static Wgmma parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const IntrinsicRecord wgmma_record;

/// Ends a group of the matmuls that the warpgroup has started since the previous group.
struct CommitSums {
  static CommitSums of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static CommitSums parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord commit_sums_record;

/// Waits until all matmuls into these variables are finished. It ends a group first, like CommitSums, unless it is of
/// `ended` groups. The matmuls of the latest `leaving` groups may still run and must add to other variables
/// (sums_under_way).
struct WaitSums {
  std::vector<VarId> sums{};
  int leaving = 0;
  bool ended = false;

  static WaitSums of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static WaitSums parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord wait_sums_record;

/// An operand of wgmma; `first` is the offset of its first tile, a multiple of 1024 bytes.
struct SwizzledTiles {
  Buffer buffer;
  Builder::Bound first;
  bool transposed = false;
};
/// Starts sums += left * right^T, or sums = left * right^T if `starts`, of 64 rows over `depth` elements. All threads
/// of a warpgroup execute it together, in the consumers of a stage. sums: f32, half as many lanes as columns.
void wgmma(Builder& builder, Var sums, const SwizzledTiles& left, const SwizzledTiles& right, int depth = wgmma_depth,
           bool starts = false);
/// Same for a left operand held by the threads; the depth is twice its lanes.
void wgmma(Builder& builder, Var sums, Value left, const SwizzledTiles& right);
/// Ends a group of the matmuls started so far.
void commit_sums(Builder& builder);
/// Waits for the matmuls into the sums; required before any other use of them. The latest `leaving` groups, the last
/// of which ends here, may still run.
void wait_sums(Builder& builder, std::span<const Var> sums, int leaving = 0);
/// Same if all groups have ended, which saves an empty one.
void wait_ended_sums(Builder& builder, std::span<const Var> sums);

}  // namespace lathe::kernel
