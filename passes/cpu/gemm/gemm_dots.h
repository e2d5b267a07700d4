#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "passes/cpu/gemm/gemm.h"

/// Dot products with lanes along k, for several rows and columns at a time, and their sums across the lanes.
namespace lathe::cpu {

struct DotTile {
  DType compute = f32;
  int lanes = 1;
  int rows = 2, columns = 8;  ///< columns: at most lanes
  /// Accumulators per sum, which take vectors of k in turn. They shorten dependency chains if there are few sums.
  int depth = 1;
  /// Maximum steps that an accumulator adds before its sum is added to a second one; 0: no limit.
  int part = 0;
};

/// Returns `lanes` elements along k of the i-th row or column of a tile, with an optional mask, like a LoadOperand.
using DotVector = std::function<kernel::Value(int i, kernel::Value k, kernel::Value mask)>;
/// A factor that `run` consecutive k of a right operand share, such as the scale of a block of quantized numbers. The
/// products of a run are summed without it and then multiplied by it once. run is a multiple of the lanes, and k0 and
/// k1 are multiples of run.
struct DotFactor {
  std::int64_t run = 0;                                            ///< 0: no factor
  std::function<kernel::Value(int column, kernel::Value k)> of{};  ///< a scalar
  std::function<void(int column, kernel::Value k)> prefetch{};     ///< of data that is read later; may be empty
};
/// Sets initial values of sums, which are zero otherwise, to continue earlier sums.
using DotStart = std::function<void(const std::vector<kernel::Var>& sums)>;

/// Returns, for each (row, column) in row-major order, the lanes of the sum over k0 .. k1 of left * right. Lane l
/// adds the products of k0 + l, k0 + l + lanes, ... in this order. With a depth, each accumulator adds every depth-th
/// of them, and the accumulators are added pairwise. With parts, it adds those of each part and then the parts. k1 -
/// k0 is a multiple of tile.lanes if `whole`. With a factor, the sum of each run times its factor is added, in order,
/// whatever the depth.
std::vector<kernel::Value> emit_dot_tile(kernel::Builder& b, const DotTile& tile, kernel::Value k0, kernel::Value k1,
                                         bool whole, const DotVector& left, const DotVector& right,
                                         const DotStart& start = {}, const DotFactor& factor = {});

/// Adds up the lanes of each sum of a DotTile and stores row i at position + i * stride of `to`. Stores extend up to
/// a vector past the columns of a row, in ascending order of rows.
void store_dots(kernel::Builder& b, const DotTile& tile, const std::vector<kernel::Value>& sums, kernel::Buffer to,
                kernel::Value position, int stride);
/// Scratch for totals of dot products.
struct DotTotals {
  kernel::Buffer sums;
  /// The part that additions to the totals round off. Totals are compensated if `when` (CompensatedTotal).
  struct Excess {
    kernel::Buffer buffer;
    kernel::Value when;
  };
  std::optional<Excess> excess = {};
};
/// Adds up the lanes and adds row i to the totals at position + i * stride of `to`, or stores it if it does not
/// continue totals. Writes nothing past the columns of a row; stride > tile.columns.
void add_dots(kernel::Builder& b, const DotTile& tile, const std::vector<kernel::Value>& sums, const DotTotals& to,
              kernel::Value position, int stride, kernel::Value continues);

}  // namespace lathe::cpu
