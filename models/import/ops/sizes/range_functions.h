#pragma once

#include "models/import/ops/tensor_functions.h"

/// Ranges of indices whose bounds are dims.
namespace lathe::importing {

/// Returns a bound of a slice: negative bounds count from the end, and all are limited to [low, size + low]. A bound
/// that is negative or 0, such as -S, must be negative in each run [import_range], unless both are the same. Throws
/// [import_size] if the sign of the bound depends on the sizes.
Dim slice_bound(const Dim& bound, const Dim& size, std::int64_t low, const OpCall& call);

/// Returns the elements start, start + step, .. below end of an axis, for a positive step; bounds as in
/// slice_bound().
Tensor sliced(const Tensor& x, int axis, const Dim& start, const Dim& end, std::int64_t step, const OpCall& call);

/// Returns the integers start, start + step, .. below limit. Throws [import_operand] for a step of 0 and
/// [import_size] if their number is no polynomial of sizes.
Tensor integer_range(const OpCall& call, const Dim& start, const Dim& limit, std::int64_t step, DType dtype);

/// Returns the floats start + i * step below limit, computed in f64 for f64 and in f32 otherwise. Throws
/// [import_size] for more than 2^31 elements.
Tensor float_range(const OpCall& call, double start, double limit, double step, DType dtype);

}  // namespace lathe::importing
