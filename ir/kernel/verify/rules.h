#pragma once

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "ir/kernel/kernel.h"
#include "ir/support/error.h"

/// What the verifier's rules are written with, and those of tensor maps and warps.
namespace lathe::kernel {

/// Throws InternalError naming the kernel, what is wrong and the rule's label, unless the condition holds.
template <class... Args>
void require(const Kernel& kernel, bool condition, std::string_view label, fmt::format_string<Args...> text,
             Args&&... args) {
  if (condition) return;
  throw InternalError(
      fmt::format("kernel {}: {}  [{}]", kernel.name, fmt::format(text, std::forward<Args>(args)...), label));
}

/// Throws [type] unless what `what` names is of the type.
void want(const Kernel& kernel, Type have, Type type, std::string_view what);

/// A map is of a parameter of 2-byte elements that is only read, by constants and dims (map_tensor), of 2 to 5 dims,
/// a box of 64 elements by as many rows as a machine takes (map_box), at multiples of 16 bytes where they are known
/// (alignment).
void verify_map(const Kernel& kernel, const TensorMap& map);
/// A thread.x loop from 0, step 1, whose constant length is a multiple of a warp: its index tells the lane.
bool is_whole_warps(const Kernel& kernel, const Loop& loop);

}  // namespace lathe::kernel
