#pragma once

#include <cstdint>
#include <functional>

#include "ir/tensor/graph.h"

namespace lathe {

/// Selects the sums that are computed from results. By default, only sums that differ just in the order of summation.
struct AttentionDelta {
  /// If not 0, only attentions whose kernel gains from processing columns in blocks of this size: their keys, values
  /// and both gradients need more than two blocks, or their size is unknown.
  std::int64_t block_bytes = 0;
  /// Also if factors are converted, as in mixed precision: a sum then differs by the rounding of result and weights.
  bool converted = false;
  /// Only if the result is narrower than the sum, as in mixed precision.
  bool narrow_only = false;
  /// Also if the gradient does not depend on the result, so that both passes may be one.
  bool independent = false;
};

/// The gradient of a softmax needs the sum of weight times gradient over all columns of each row. Let the weights, or
/// values derived from them by point-wise factors such as dropout, be multiplied by the values, and let their
/// gradient be the product of these values and the result's gradient. The sum is then the dot product of the row's
/// result and the result's gradient (Dao et al. 2022, FlashAttention, appendix B.2). It is known before any score. A
/// dot product that is not finite is replaced by NaN, because the sum is infinite or NaN in that case.
///
///   %5 = contract %w, %v {"abcd,abde->abce"}                  %5 = contract %w, %v {"abcd,abde->abce"}
///   %6 = contract %dy, %v {"abcd,abed->abce"}           ->    %7 = mul %5, %dy
///   %7 = mul %6, %w                                           %8 = sum %7 {dims=[3]}
///   %8 = sum %7 {dims=[3], keepdim=true}                      %9 = view %8 where it is finite, else NaN
///
/// Sums are in f32 or f64, and so are the dot products. Applies to the matmuls that compute a result and are
/// `wanted`.
ir::Graph sums_from_results(const ir::Graph& graph, const std::function<bool(ir::ValueId product)>& wanted,
                            const AttentionDelta& which = {});

}  // namespace lathe
