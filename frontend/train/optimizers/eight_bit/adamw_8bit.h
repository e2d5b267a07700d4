#pragma once

#include "frontend/train/optimizer.h"

namespace lathe {

/// AdamW with moments of 8 bits (Dettmers et al. 2022): blocks of 256 neighbours share an f32 scale, the block's
/// largest absolute value, and each moment is the nearest of 256 values of the dynamic map of bitsandbytes. Matrices
/// with fewer than `smallest` elements, whose states hardly matter, keep f32 moments. The states of a parameter are
/// "optimizer.m.<parameter>" (i8) and "optimizer.v.<parameter>" (u8), both [blocks, 256], with the scales
/// "optimizer.m_scale.<parameter>" and "optimizer.v_scale.<parameter>", both f32 [blocks, 1].
struct AdamW8bit {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  std::int64_t smallest = 4096;

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace lathe
