#pragma once

#include <cstdint>

namespace lathe {

/// When to compute a matmul and its row-wise consumers in chunks of rows. Each chunk but the first reads and writes
/// the reduction over rows (the gradient of the table) once more. This is cheap compared to the three matmuls of a
/// chunk with many rows. The defaults are for a CPU.
struct RowChunks {
  bool on = true;
  std::int64_t least_rows = 1024;         ///< minimum rows per chunk; at least 1
  std::int64_t least_saved = 64LL << 20;  ///< minimum bytes of the matmul's result that need not be live at once
  bool operator==(const RowChunks&) const = default;
};

}  // namespace lathe
