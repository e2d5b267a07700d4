#pragma once

#include <string_view>
#include <vector>

#include "frontend/ops/spatial/conv_ops.h"

namespace lathe::detail {

/// Returns one number for each spatial dim. Throws UserError [conv_options] if there are others, or a number is less
/// than `least`.
std::vector<std::int64_t> for_each_dim(std::string_view op, std::string_view name, const PerDim& numbers, int spatial,
                                       const Where& at, std::int64_t least = 0);

}  // namespace lathe::detail
