#pragma once

#include "models/import/ops/tensor_functions.h"

/// Writes of elements at indices. Negative indices count from the end, and one out of range is an error at run time
/// [index_range]. Results do not depend on the number of threads: equal indices are combined in the order of the
/// updates, or in the order of their values.
namespace lathe::importing {

/// How an element is combined with the updates of its index. Of equal indices, `replace` keeps the last update.
enum class ScatterKind : std::uint8_t { replace, add, multiply, mean, largest, smallest };

struct ScatterOptions {
  ScatterKind kind = ScatterKind::replace;
  /// Whether the element itself is one of the values that are combined. If not, it is kept where no index names it.
  bool includes_self = true;
};

/// Returns x combined with updates at the indices of operand `i` along an axis. Indices and updates have the rank of
/// x. The indices have at most the sizes of x along other axes, and at most those of the updates; further updates are
/// not read. NaN is the largest and the smallest value. The gradients of products are exact with any number of zeros;
/// that of the largest or smallest value is divided evenly among equal ones. Throws [import_operand].
Tensor scattered_along(const OpCall& call, const Tensor& x, std::size_t i, const Tensor& updates, int axis,
                       const ScatterOptions& options);

/// Combines rows of dim 0 with the rows of updates at their positions [n], in the same way.
Tensor with_rows(const Tensor& data, const Tensor& positions, const Tensor& rows, const ScatterOptions& options);

}  // namespace lathe::importing
