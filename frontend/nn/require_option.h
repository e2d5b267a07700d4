#pragma once

#include <fmt/core.h>

#include <string_view>

#include "frontend/tensor.h"
#include "ir/support/error.h"

namespace lathe::nn {

/// Throws UserError "op: name is value" at the user's line unless `holds`.
template <class Value>
void require_option(const Where& at, std::string_view op, std::string_view label, bool holds, std::string_view name,
                    const Value& value, std::string_view hint) {
  if (!holds) throw UserError(Location(at), op, fmt::format("{} is {}", name, value), label, hint);
}

}  // namespace lathe::nn
