#pragma once

#include <cstdint>
#include <functional>

#include "ir/tensor/graph.h"

namespace lathe {

/// Which sums are taken from results. By default those that are the same but for their order.
struct ResultDots {
  /// Not 0: only where the columns' values are so many, or of unknown number, that a kernel gains by going through
  /// them in blocks: keys, values and the gradients of both take more than two of it.
  std::int64_t block_bytes = 0;
  /// Also where factors are converted, as in mixed precision: a sum then differs by the roundings of result and
  /// weights.
  bool converted = false;
  /// Only where the result is narrower than the sum, as in mixed precision.
  bool narrow_only = false;
  /// Also where the gradient does not need the result, so that both passes may be one.
  bool independent = false;
};

/// The gradient of a softmax wants of each row the sum of weight times gradient over all columns. Where the weights,
/// or what is made of them by point-wise factors like dropout, were multiplied by the values whose product with the
/// result's gradient that gradient is, the sum is the dot product of the row's result and that result's gradient (Dao
/// et al. 2022, FlashAttention, appendix B.2), known before any score is. NaN stands where that is not finite: there
/// the sum is infinite or NaN.
///
///   %5 = contract %w, %v {"abcd,abde->abce"}                  %5 = contract %w, %v {"abcd,abde->abce"}
///   %6 = contract %dy, %v {"abcd,abed->abce"}           ->    %7 = mul %5, %dy
///   %7 = mul %6, %w                                           %8 = sum %7 {dims=[3]}
///   %8 = sum %7 {dims=[3], keepdim=true}                      %9 = view %8 where it is finite, else NaN
///
/// Sums are in f32 or f64, and so are the dot products, for the products that make a result and are `wanted`.
ir::Graph sums_from_results(const ir::Graph& graph, const std::function<bool(ir::ValueId product)>& wanted,
                            const ResultDots& which = {});

}  // namespace lathe
