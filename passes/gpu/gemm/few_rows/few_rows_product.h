#pragma once

#include <optional>

#include "passes/gpu/gemm/product_parts.h"

namespace lathe::gpu {

/// How a product of few rows is shared out, so that its right operand is read once, 16 bytes a thread, by as many
/// threads as memory needs to be busy. Sums are split over threads alone, by the sizes, never by the number of rows.
struct FewRowsPlan {
  int threads = 1;  ///< of a block
  /// Of them for a vector of columns, or for one where the right operand lies along what is summed over: each takes
  /// every so many of what is summed, and a tree adds what they have.
  int split = 1;
  int lanes = 1;    ///< neighbours in memory that a thread loads at once
  int at_once = 1;  ///< loads of a thread that are under way together
};

/// The plan of a right operand that lies along what is summed over; unknown sizes count as large.
FewRowsPlan plan_dots(const GpuInfo& gpu, int lanes, std::optional<std::int64_t> columns,
                      std::optional<std::int64_t> k);
/// The plan of one that lies along the columns, whose sums of `rows` of `sum_bytes` each go through shared memory;
/// `columns` of one of `batch` products.
FewRowsPlan plan_columns(const GpuInfo& gpu, int lanes, int rows, int sum_bytes, std::optional<std::int64_t> batch,
                         std::optional<std::int64_t> columns, std::optional<std::int64_t> k);

}  // namespace lathe::gpu
