#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/record.h"
#include "ir/kernel/machine/swizzled_tiles.h"
#include "ir/kernel/machine/thread_sums.h"

namespace lathe::kernel {

inline constexpr int wgmma_rows = 64, wgmma_columns = 128, wgmma_depth = 64;  ///< the most, of columns and depth

/// Of the 64 rows of sums that the 128 threads of a warpgroup hold in f32 together, as wgmma.m64nNk16 lays them out:
/// which one is number `index` in the vector of thread `thread`, however many columns there are, up to 128. Elements
/// of a left operand that threads hold are laid out alike.
AccumulatorPosition wgmma_sum_position(int thread, int index);

/// Starts to add left * right^T, `depth` deep (16 to 64), to the sums (wgmma_sum_position) of 64 rows and right.rows
/// columns (16, 32, 64 or 128) that a warpgroup holds in a variable, f32 of right.rows / 2 lanes. left is a tile,
/// right is one, or two behind each other; the operand's rows are rows of tiles, or their columns where it is
/// transposed. The first ones are multiples of 1024 bytes, equal in all threads of a warpgroup. What lies there was
/// produced for the stage that this stands in, or stored before the pipeline, and is kept until the product is done;
/// products are added in order. From here to a WaitSums of the variable nothing but further products may use it.
///
/// Instead of a tile the left operand may be a value of bf16 or f16, depth / 2 lanes, of which the threads hold
/// positions as of sums. It is computed anew only after such a wait. A product of tiles that `starts` the sums sets
/// them instead of adding to them.
struct Wgmma {
  VarId sums = none;
  int depth = wgmma_depth;
  bool starts = false;
  SharedOperand left{}, right{};  ///< of a left value the left one does not count
  ValueId left_value = none;

  static Wgmma of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const MachineRecord wgmma_record;

/// Waits until the products that are added to these variables are done.
struct WaitSums {
  std::vector<VarId> sums{};

  static WaitSums of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
};
extern const MachineRecord wait_sums_record;

/// An operand of wgmma: where its first tile begins, a multiple of 1024 bytes.
struct SwizzledTiles {
  Buffer buffer;
  Builder::Bound first;
  bool transposed = false;
};
/// Starts sums += left * right^T of 64 rows over `depth` elements, or = where it `starts` them, for all threads of a
/// warpgroup together, in the consumers of a stage. sums: f32, half as many lanes as columns.
void wgmma(Builder& builder, Var sums, const SwizzledTiles& left, const SwizzledTiles& right, int depth = wgmma_depth,
           bool starts = false);
/// The same of a left operand that the threads hold, twice as deep as it has lanes.
void wgmma(Builder& builder, Var sums, Value left, const SwizzledTiles& right);
/// Before it such sums are not used.
void wait_sums(Builder& builder, std::span<const Var> sums);

}  // namespace lathe::kernel
