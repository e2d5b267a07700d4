#pragma once

#include <functional>
#include <vector>

#include "passes/cpu/gemm/gemm.h"

/// Dot products with lanes along k, several rows by several columns at once, and their sums across the lanes.
namespace lathe::cpu {

struct DotTile {
  DType compute = f32;
  int lanes = 1;
  int rows = 2, columns = 8;  ///< columns: at most lanes
  /// Accumulators of each sum, which take vectors of k in turn: so that few sums do not wait for each other.
  int depth = 1;
};

/// `lanes` elements along k of the i-th row or column of a tile, with a mask or none, as a LoadOperand gives them.
using DotVector = std::function<kernel::Value(int i, kernel::Value k, kernel::Value mask)>;
/// A factor that `run` neighbours along k of a right operand share, such as the scale of a block of quantized
/// numbers: products of a run are summed without it, then multiplied by it once. run is a multiple of the lanes, and
/// k0 and k1 are multiples of run.
struct DotFactor {
  std::int64_t run = 0;                                            ///< 0: there is none
  std::function<kernel::Value(int column, kernel::Value k)> of{};  ///< a scalar
  std::function<void(int column, kernel::Value k)> prefetch{};     ///< of what is read later; may be empty
};
/// Sets sums, which are zero, where the products continue.
using DotStart = std::function<void(const std::vector<kernel::Var>& sums)>;

/// For each (row, column), row by row, the lanes of the sum over k0 .. k1 of left * right: lane l has the products of
/// k0 + l, k0 + l + lanes, ... in this order, or with a depth the sums of every depth-th of them, added pairwise. k1
/// - k0 is a multiple of tile.lanes if `whole`. With a factor it has the sums of each run times their factor instead,
/// in order, whatever the depth.
std::vector<kernel::Value> emit_dot_tile(kernel::Builder& b, const DotTile& tile, kernel::Value k0, kernel::Value k1,
                                         bool whole, const DotVector& left, const DotVector& right,
                                         const DotStart& start = {}, const DotFactor& factor = {});

/// Adds up the lanes of such sums and stores row i's from position + i * stride of `to` on; stores go up to a vector
/// beyond the columns of a row, in ascending order of rows.
void store_dots(kernel::Builder& b, const DotTile& tile, const std::vector<kernel::Value>& sums, kernel::Buffer to,
                kernel::Value position, int stride);

}  // namespace lathe::cpu
