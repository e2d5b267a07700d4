#pragma once

#include "passes/fusion/prepare/pad_products.h"
#include "passes/gpu/attention/attention_stages.h"
#include "passes/gpu/gemm/gpu_product_sizes.h"
#include "passes/gpu/reduction/reduction_sizes.h"

namespace lathe::gpu {

/// The tuned sizes of all GPU schedules. Each default is next to the schedule that uses it. All GPUs use the
/// defaults: no others have been measured.
struct GpuSizes {
  GpuProductSizes products = {};
  AttentionStages attention = {};
  ReductionSizes reductions = {};
  PaddingLimits padding = {};
  bool operator==(const GpuSizes&) const = default;
};

}  // namespace lathe::gpu
