#pragma once

#include "models/import/op_call.h"

/// Resizing by whole factors, which is possible for dims of any size.
namespace lathe::importing {

/// Returns outputs / inputs if it is the same whole number of at least 1 for all sizes.
std::optional<std::int64_t> whole_factor(const Dim& inputs, const Dim& outputs);

/// Repeats each element of a dim `factor` times: nearest neighbours.
Tensor repeated(const Tensor& x, int axis, std::int64_t factor);

/// Interpolates between the centers of elements (half-pixel coordinates): output factor * i + p is at
/// i + (p + 0.5) / factor - 0.5. Outputs before the first center and after the last one have its value.
Tensor interpolated(const Tensor& x, int axis, std::int64_t factor);

}  // namespace lathe::importing
