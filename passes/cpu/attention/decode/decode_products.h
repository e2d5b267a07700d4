#pragma once

#include <algorithm>
#include <functional>

#include "ir/hardware/memory_units.h"
#include "passes/cpu/attention/attention_output.h"
#include "passes/cpu/attention/decode/decode_loops.h"
#include "passes/cpu/cpu_context.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

/// Sizes of the matmuls of a decode attention, one with few rows. All rows are processed together, so keys and values
/// are read once.
struct DecodeShape {
  DType compute = f32;
  int lanes = 1;
  int rows = 1;
  int accumulators = 1;
  int held = 0;  ///< limit on the vectors of rows that also stay in registers
  /// Columns that sums process at a time if the sums of the whole depth do not fit into registers.
  int block_columns = 1;

  /// Returns the prefetch distance in columns of `depth` elements: one page, because the hardware prefetcher follows
  /// a stream only up to the end of a page.
  std::int64_t prefetch_distance(std::int64_t depth) const {
    return std::max<std::int64_t>(1, page_bytes / (depth * static_cast<std::int64_t>(size_in_bytes(compute))));
  }
  int bytes() const { return lanes * static_cast<int>(size_in_bytes(compute)); }
};

/// slot[row][column] = sum over the depth of rows * columns. Lanes run along the depth, or along the columns if
/// neighboring columns are adjacent in memory.
class DecodeScore {
 public:
  DecodeScore(KernelContext& context, const CpuContext& lowering, const AttentionParts::Score& part,
              const DecodeShape& shape);

  const AttentionParts::Score& part() const { return part_; }
  void hoist();
  /// [row][depth]
  void set_scratch(ScratchMatrix packed_rows) { packed_rows_ = packed_rows; }
  /// Packs all rows of an outer index.
  void pack_rows(kernel::Value outer);
  /// Writes up to a vector past the last column.
  void multiply(const ScratchMatrix& slot, kernel::Value outer, const DecodeLoops::Columns& columns);

 private:
  using ColumnDots = std::function<std::vector<kernel::Value>(kernel::Value column)>;
  ColumnDots column_dots(kernel::Value outer);
  void dots(const ScratchMatrix& slot, kernel::Value outer, const DecodeLoops::Columns& columns);
  void along_columns(const ScratchMatrix& slot, kernel::Value outer, const DecodeLoops::Columns& columns);

  KernelContext& context_;
  kernel::Builder& b_;
  const AttentionParts::Score& part_;
  DecodeShape shape_;
  OperandLoader rows_, columns_;
  ScratchMatrix packed_rows_;
};

/// sums[at + row] = sum over columns of slot[row][column] * other[column], lanes along the depth.
class DecodeSum {
 public:
  DecodeSum(KernelContext& context, AttentionOutput& output, const DecodeShape& shape)
      : context_(context), b_(context.builder), output_(output), shape_(shape) {}

  AttentionOutput& output() { return output_; }
  /// [row][depth], rows padded to whole vectors.
  void set_sums(ScratchMatrix sums) { sums_ = sums; }
  void add_up(const ScratchMatrix& slot, kernel::Value outer, const DecodeLoops::Columns& columns, kernel::Value at);

 private:
  void tile(const ScratchMatrix& slot, kernel::Value outer, const DecodeLoops::Columns& all,
            const DecodeLoops::Columns& some, kernel::Value at, kernel::Value depth0, int vectors);

  KernelContext& context_;
  kernel::Builder& b_;
  AttentionOutput& output_;
  DecodeShape shape_;
  ScratchMatrix sums_;
};

}  // namespace lathe::cpu
