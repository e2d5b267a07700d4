#pragma once

#include "models/import/op_call.h"

/// Resizing by whole factors, and by 1 / k of a multiple of k, which is possible for dims of unknown size.
namespace lathe::importing {

/// Returns outputs / inputs if it is the same whole number of at least 1 for all sizes.
std::optional<std::int64_t> whole_factor(const Dim& inputs, const Dim& outputs);

/// Repeats each element of a dim `factor` times: nearest neighbours.
Tensor repeated(const Tensor& x, int axis, std::int64_t factor);

/// Interpolates between the centers of elements (half-pixel coordinates): output factor * i + p is at
/// i + (p + 0.5) / factor - 0.5. Outputs before the first center and after the last one have its value.
Tensor interpolated(const Tensor& x, int axis, std::int64_t factor);

/// Returns size / k for a factor of 1 / k, where k is a power of two of at least 2, so that the factor is exact;
/// nothing for other factors. Throws [import_size] for a size that is not known to be a multiple of k.
std::optional<Dim> exact_part(const OpCall& call, const Dim& size, double factor);

/// Returns element `at` of each group of `divisor` adjacent elements of a dim, whose size is a multiple of it.
Tensor element_of_groups(const Tensor& x, int axis, std::int64_t divisor, std::int64_t at);

/// Interpolates at the center of each group of `divisor` adjacent elements.
Tensor centers_of_groups(const Tensor& x, int axis, std::int64_t divisor);

}  // namespace lathe::importing
