#pragma once

#include "passes/program/text/program_references.h"

namespace lathe::detail {

/// Parses a launch after its number, and the remarks below it. Its region's kind, number and ops are those of `info`.
///
///   kernel 0 @k0_rows(x, "%1 exp") for n
///     as "row reduction", work 8, flops 4*n, bytes 8*n, partial [1], part of %4
///     not by "tile mma" "the reason"
Launch parse_launch(GraphTokens& in, References& references, const LaunchInfo& info);

}  // namespace lathe::detail
