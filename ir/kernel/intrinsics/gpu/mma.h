#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/gpu/thread_sums.h"
#include "ir/kernel/intrinsics/record.h"

namespace lathe::kernel {

inline constexpr int mma_depth = 16;

/// sums + left * right^T over 16 elements, for a tile of left.rows x right.rows f32 sums held by the 32 threads of a
/// warp (accumulator_position). An operand's row count is a multiple of 16. Element (row, k) is buffer[first + row *
/// stride + k], or buffer[first + k * stride + row] if transposed. `first` and `stride` are multiples of 8 elements
/// and uniform over the warp.
struct Mma {
  Type type{};
  SharedOperand left{}, right{};
  ValueId sums = none;

  static Mma of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static Mma parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const IntrinsicRecord mma_record;

/// An operand of mma: the index of element (0, 0), and the row stride.
struct MmaOperand {
  Buffer buffer;
  Builder::Bound first, stride;
  int rows = 0;
  bool transposed = false;
};
/// Emits sums + left * right^T over 16 elements; all threads of a warp execute it together. sums: f32, left.rows *
/// right.rows / 32 lanes.
Value mma(Builder& builder, const MmaOperand& left, const MmaOperand& right, Value sums);

}  // namespace lathe::kernel
