#include "ir/kernel/intrinsics/intrinsic_families.h"

namespace lathe::kernel {

extern const IntrinsicFamily block_order_intrinsics, copy_intrinsics, box_intrinsics, exchange_intrinsics,
    fast_math_intrinsics, hand_over_intrinsics, mma_intrinsics, pair_intrinsics, phase_intrinsics,
    pipeline_intrinsics, tile_intrinsics, turn_intrinsics, warpgroup_intrinsics;

std::span<const IntrinsicFamily* const> intrinsic_families() {
  static const IntrinsicFamily* const all[] = {&block_order_intrinsics, &copy_intrinsics,      &box_intrinsics,
                                               &exchange_intrinsics,    &fast_math_intrinsics, &phase_intrinsics,
                                               &hand_over_intrinsics,   &mma_intrinsics,       &pair_intrinsics,
                                               &pipeline_intrinsics,    &tile_intrinsics,      &turn_intrinsics,
                                               &warpgroup_intrinsics};
  return all;
}

}  // namespace lathe::kernel
