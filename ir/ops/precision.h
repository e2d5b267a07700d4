#pragma once

#include "ir/tensor/op.h"

namespace lathe::ir {

/// In which dtype mixed precision (passes/transforms/mixed_precision.h) computes an op of f32 values. The lists are
/// those of torch.autocast.
enum class Precision {
  narrow,  ///< bf16 or f16: products, which have the speed of it and accumulate in f32
  wide,    ///< f32: sums, norms, softmax, losses, and functions that overflow or magnify rounding
  follow,  ///< what its operands are: narrow where all of them are, f32 where one of them is
};

/// An op is registered with it, in ir/ops/registry.cpp: there is none without.
Precision precision_of(const Op& op);

}  // namespace lathe::ir
