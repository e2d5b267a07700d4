#pragma once

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "ir/kernel/kernel.h"
#include "ir/support/error.h"

/// Helpers of the verifier's rules, and the rules for tensor maps and warps.
namespace lathe::kernel {

/// Throws InternalError with the kernel, the message and the rule's label, unless the condition holds.
template <class... Args>
void require(const Kernel& kernel, bool condition, std::string_view label, fmt::format_string<Args...> text,
             Args&&... args) {
  if (condition) return;
  throw InternalError(
      fmt::format("kernel {}: {}  [{}]", kernel.name, fmt::format(text, std::forward<Args>(args)...), label));
}

/// Throws [type] unless `have` equals `type`; `what` names the checked value.
void want(const Kernel& kernel, Type have, Type type, std::string_view what);

/// Checks a tensor map: a read-only parameter of 2-byte elements, described by constants and dims (map_tensor), 2 to
/// 5 dims, a box of 64 elements by a supported number of rows (map_box), and known offsets and strides at multiples
/// of 16 bytes (alignment).
void verify_map(const Kernel& kernel, const TensorMap& map);
/// Returns whether the loop is a thread.x loop from 0 with step 1 whose constant length is a multiple of a warp. Its
/// index then determines the lane.
bool is_whole_warps(const Kernel& kernel, const Loop& loop);

}  // namespace lathe::kernel
