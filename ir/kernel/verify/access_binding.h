#pragma once

#include <span>

#include "ir/kernel/verify/access_site.h"

namespace lathe::kernel {

/// Binds a site to the dims of a launch. Evaluates and removes the steps that depend only on dims. Splits a loop
/// whose index is decomposed by division and remainder into one independent counter per digit:
///
///   loop i = 0 .. 240              count block = 0 .. 5
///   block = i div 48          ->   count column = 0 .. 48
///   column = i rem 48              i = block * 48 + column
AccessSite bind(const AccessSite& site, std::span<const std::int64_t> dims);

}  // namespace lathe::kernel
