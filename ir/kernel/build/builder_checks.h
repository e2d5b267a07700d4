#pragma once

#include <fmt/core.h>

#include <utility>

#include "ir/support/error.h"

namespace lathe::kernel {

/// Throws InternalError unless the condition holds. A failure is a bug in the code that builds a kernel, never a user
/// error.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw InternalError("kernel builder: " + fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace lathe::kernel
