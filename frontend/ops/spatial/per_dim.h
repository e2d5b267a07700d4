#pragma once

#include <string_view>
#include <vector>

#include "frontend/ops/spatial/conv_ops.h"

namespace lathe::detail {

/// Throws UserError [conv_rank] unless x is [batch, channels] and `least` to `most` spatial dims.
void require_spatial_dims(std::string_view op, const Tensor& x, int least, int most, const Where& at);

/// Returns one number for each spatial dim. Throws UserError [conv_options] if there are others, or a number is less
/// than `least`.
std::vector<std::int64_t> for_each_dim(std::string_view op, std::string_view name, const PerDim& numbers, int spatial,
                                       const Where& at, std::int64_t least = 0);

}  // namespace lathe::detail
