#pragma once

#include <fmt/core.h>

#include <utility>

#include "ir/support/error.h"

namespace lathe::kernel {

/// A mistake of the code that builds a kernel: no user can cause it.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw InternalError("kernel builder: " + fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace lathe::kernel
