#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::gpu {

/// The register layout of wgmma, for the sums of 64 rows and for a left operand. A thread has two rows, 8 apart, and
/// of each 8 columns two adjacent ones (see kernel::wgmma_sum_position). The four threads of a row are adjacent in a
/// warp. The pair of a thread's r-th row in the i-th 8 columns starts at its element 4 i + 2 r.
struct WgmmaPositions {
  static constexpr int rows_of_thread = 2, row_step = 8, threads_of_row = 4, pair = 2,
                       rows_of_warp = rows_of_thread * row_step;

  static kernel::Value first_row(kernel::Value thread) {
    return thread / kernel::warp_threads * rows_of_warp + thread % kernel::warp_threads / threads_of_row;
  }
  static kernel::Value first_column(kernel::Value thread) { return thread % threads_of_row * pair; }
  static kernel::Value element(kernel::Value i, std::size_t r) {
    return i * (pair * rows_of_thread) + static_cast<int>(r) * pair;
  }
};

}  // namespace lathe::gpu
