#pragma once

#include <span>

#include "ir/kernel/intrinsics/region.h"

namespace lathe::kernel {

/// The records of a file in this folder.
struct IntrinsicFamily {
  std::span<const IntrinsicRecord* const> operations{};
  std::span<const IntrinsicRegionRecord* const> regions{};
};

/// Returns all families. The parser finds the records of intrinsics and regions here, by name.
std::span<const IntrinsicFamily* const> intrinsic_families();

}  // namespace lathe::kernel
