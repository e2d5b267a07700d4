#pragma once

#include <cstdint>

namespace lathe::gpu {

/// Sizes of attention kernels. The origin of the defaults is not recorded, except that of turn_columns.
struct AttentionStages {
  /// Minimum number of columns that a row of a wgmma attention reads on average for warpgroups that take turns. Such
  /// a block is alone on its multiprocessor, so nothing hides its start and end: about 3 us, estimated as four
  /// accesses to memory one after the other. 2048 columns for 128 rows of heads of 128 take 20 us (1.2 us for 128
  /// columns at the peak of the tensor cores), so at most a seventh is lost, about what turns gain.
  std::int64_t turn_columns = 2048;
  int most = 4, least = 2;            ///< maximum and minimum stages of wgmma attentions
  int steps = 64;                     ///< maximum elements of the reduced dim copied per stage in mma attentions
  std::int64_t slot_bytes = 5 << 10;  ///< maximum slot bytes: a block with head size 64 has eight slots
  bool one_gradient_kernel = true;    ///< wgmma: dK, dV and dQ in one kernel where it fits, otherwise always in two
  bool operator==(const AttentionStages&) const = default;
};

}  // namespace lathe::gpu
