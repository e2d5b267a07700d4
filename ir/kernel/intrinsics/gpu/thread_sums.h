#pragma once

#include <vector>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/kernel.h"

/// Matmul accumulators distributed over the threads of a warp or a warpgroup.
namespace lathe::kernel {

/// A matmul operand in shared memory: `rows` rows of K elements, or the transposed layout.
struct SharedOperand {
  BufferId buffer = none;
  ValueId first = none, stride = none;  ///< stride: between rows; unused if swizzled
  int rows = 0;
  bool transposed = false;
};

/// The position, in a tile of `columns` columns, of sum `index` in the vector of thread `lane`. The layout is that of
/// mma.sync.m16n8k16.
struct AccumulatorPosition {
  int row = 0, column = 0;
};
AccumulatorPosition accumulator_position(int columns, int lane, int index);

/// The distinct rows and columns of a thread's sums, and for each sum its indices into them.
struct OwnSums {
  std::vector<int> rows = {}, columns = {};
  std::vector<std::pair<std::size_t, std::size_t>> positions = {};

  void add(AccumulatorPosition at);
  /// Computes out = sums + a * b, where a and b hold `depth` elements per row and column. Adds products in order with
  /// one fma each.
  void multiply(const std::vector<Scalar>& a, const std::vector<Scalar>& b, std::size_t depth, const Scalar* sums,
                Scalar* out) const;
};

}  // namespace lathe::kernel
