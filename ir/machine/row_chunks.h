#pragma once

#include <cstdint>

namespace lathe {

/// When a product and what is made of its rows are computed in chunks of rows. Each chunk but the first reads and
/// writes once more what is summed over rows (the gradient of the table), which takes little beside the three
/// products of a chunk with many rows. The defaults are a CPU's; each entry of a machine has its own.
struct RowChunks {
  bool on = true;
  std::int64_t least_rows = 1024;         ///< of a chunk; at least 1
  std::int64_t least_saved = 64LL << 20;  ///< bytes of the product's result that need not exist at a time
  bool operator==(const RowChunks&) const = default;
};

}  // namespace lathe
