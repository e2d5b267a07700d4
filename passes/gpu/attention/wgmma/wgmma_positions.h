#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::gpu {

/// Where wgmma leaves the sums of 64 rows, and finds a left operand in registers: a thread has two rows, 8 apart, and
/// of each 8 columns two neighbours (see kernel::wgmma_sum_position). The four threads of a row are neighbours in a
/// warp. Of a thread's elements the pair of its r-th row in the i-th 8 columns is number 4 i + 2 r.
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
