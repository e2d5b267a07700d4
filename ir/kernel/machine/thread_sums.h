#pragma once

#include <vector>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/kernel.h"

/// Sums of products that the threads of a warp or a warpgroup hold together.
namespace lathe::kernel {

/// A matrix that operations multiply, in shared memory: `rows` rows of elements that are summed over, or where it is
/// transposed the other way round.
struct SharedOperand {
  BufferId buffer = none;
  ValueId first = none, stride = none;  ///< stride: from row to row, of one that is not swizzled
  int rows = 0;
  bool transposed = false;
};

/// Which sum of a tile of `columns` columns is number `index` in the vector of thread `lane` of the warp, as
/// mma.sync.m16n8k16 lays it out.
struct AccumulatorPosition {
  int row = 0, column = 0;
};
AccumulatorPosition accumulator_position(int columns, int lane, int index);

/// The rows, or columns, of a thread's sums, and of each sum their numbers among these.
struct OwnSums {
  std::vector<int> rows = {}, columns = {};
  std::vector<std::pair<std::size_t, std::size_t>> positions = {};

  void add(AccumulatorPosition at);
  /// out = sums + a * b, where a and b are `depth` elements of each row and column: products in order, each product
  /// and sum rounded once, as fma.
  void multiply(const std::vector<Scalar>& a, const std::vector<Scalar>& b, std::size_t depth, const Scalar* sums,
                Scalar* out) const;
};

}  // namespace lathe::kernel
