#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/record.h"
#include "ir/kernel/machine/thread_sums.h"

namespace lathe::kernel {

inline constexpr int mma_depth = 16;

/// sums + left * right^T over 16 elements, of a tile of left.rows x right.rows sums that the 32 threads of a warp
/// hold in f32 together (accumulator_position). An operand has a multiple of 16 rows; element (row, k) is
/// buffer[first + row * stride + k], or where it lies transposed buffer[first + k * stride + row]; `first` and
/// `stride` are multiples of 8 elements, equal in all threads of a warp.
struct Mma {
  Type type{};
  SharedOperand left{}, right{};
  ValueId sums = none;

  static Mma of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const MachineRecord mma_record;

/// An operand of mma: where element (0, 0) is, and how far it is from one row to the next.
struct MmaOperand {
  Buffer buffer;
  Builder::Bound first, stride;
  int rows = 0;
  bool transposed = false;
};
/// sums + left * right^T over 16 elements, for all threads of a warp together. sums: f32, left.rows * right.rows / 32
/// lanes.
Value mma(Builder& builder, const MmaOperand& left, const MmaOperand& right, Value sums);

}  // namespace lathe::kernel
