#pragma once

#include <span>

#include "ir/kernel/verify/access_site.h"

namespace lathe::kernel {

/// The site of a launch with these dims: its steps without those that depend on dims alone, which are done. A loop
/// whose index is taken apart by division and remainder becomes one for each digit, for these count apart:
///
///   loop i = 0 .. 240              count block = 0 .. 5
///   block = i div 48          ->   count column = 0 .. 48
///   column = i rem 48              i = block * 48 + column
AccessSite bind(const AccessSite& site, std::span<const std::int64_t> dims);

}  // namespace lathe::kernel
