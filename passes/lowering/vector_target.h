#pragma once

#include "ir/support/dtype.h"

namespace lathe {

/// The vectors that a target computes with; all that schedules know of it.
struct VectorTarget {
  int bits = 512;
  bool dot_pairs = false;        ///< has an instruction for it, so that products of bf16 use it
  bool far_l3 = false;           ///< lines that L2 does not keep come from far away: see GemmQuery
  bool tiles = false;            ///< has tile_mma, so that products of bf16 use it
  int lanes(DType dtype) const;  ///< of values computed in `dtype`: bf16 and f16 count as f32
  bool operator==(const VectorTarget&) const = default;
};

}  // namespace lathe
