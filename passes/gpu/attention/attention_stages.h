#pragma once

#include <cstdint>

namespace lathe::gpu {

/// Sizes of attention kernels. The origin of the defaults is not recorded.
struct AttentionStages {
  int most = 4, least = 2;            ///< maximum and minimum stages of wgmma attentions
  int steps = 64;                     ///< maximum elements of the reduced dim copied per stage in mma attentions
  std::int64_t slot_bytes = 5 << 10;  ///< maximum slot bytes: a block with head size 64 has eight slots
  bool operator==(const AttentionStages&) const = default;
};

}  // namespace lathe::gpu
