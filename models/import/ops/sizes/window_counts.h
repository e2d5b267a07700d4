#pragma once

#include "models/import/op_call.h"

/// Numbers of windows of convolutions and pools along a dim whose size may be unknown.
namespace lathe::importing {

/// Throws SizeMultiple if a stride does not divide the part of a size that a run gives: the number of windows along
/// dim `dim` is a polynomial of sizes only if it does.
void require_multiple(const OpCall& call, int dim, const Dim& size, std::int64_t stride);

/// Returns the padding at the end that a rounded up number of windows needs. `size` is that of the dim with its
/// padding `high` at the end; the stride divides its unknown part. A window that would start after the dim does not
/// count.
std::int64_t ceil_excess(const Dim& size, std::int64_t high, std::int64_t extent, std::int64_t stride);

}  // namespace lathe::importing
