#pragma once

#include <functional>
#include <optional>

#include "passes/gpu/gemm/product_parts.h"

namespace lathe::gpu {

/// How a GEMV, a matmul with few rows, is distributed, so that its right operand is read once, 16 bytes per thread,
/// by enough threads to keep memory busy. Sums are only split over the threads of a block, depending on the sizes.
struct GemvPlan {
  int threads = 1;  ///< per block
  /// Threads per vector of columns, or per column if the right operand is contiguous along the summed dim. Each
  /// thread sums a part, and a tree combines the parts.
  int split = 1;
  int lanes = 1;    ///< adjacent elements that a thread loads at a time
  int at_once = 1;  ///< loads in flight per thread
};

/// Plans a right operand that is contiguous along the summed dim; unknown sizes are treated as large.
GemvPlan plan_dots(const GpuInfo& gpu, int lanes, std::optional<std::int64_t> columns, std::optional<std::int64_t> k);
/// Plans a right operand that is contiguous along the columns. Its sums, `rows` of `sum_bytes` each, go through
/// shared memory, of which `shared_bytes` returns the bytes that a block of some threads may use. `columns` is the
/// number per matmul of the `batch`.
GemvPlan plan_columns(const std::function<std::int64_t(int threads)>& shared_bytes, int lanes, int rows,
                      int sum_bytes, std::optional<std::int64_t> batch, std::optional<std::int64_t> columns,
                      std::optional<std::int64_t> k);

}  // namespace lathe::gpu
