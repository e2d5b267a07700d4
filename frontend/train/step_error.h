#pragma once

#include <string>
#include <string_view>

#include "ir/support/error.h"

namespace lathe::detail {

/// Throws UserError "training_step: message" unless the condition holds; with the line if it is known.
inline void require_at(const Location& line, bool condition, const std::string& message, std::string_view label,
                       std::string_view hint) {
  if (condition) return;
  if (line.known()) throw UserError(line, "training_step", message, label, hint);
  throw UserError("training_step: " + message, label, hint);
}

}  // namespace lathe::detail
