#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "passes/program/program.h"

namespace lathe {

struct LoopFault {
  std::string_view label;  ///< "program_loop" or "program_slice"
  std::string what;
};

/// Returns the first loop whose range is wrong, or slice that is not part of its buffer in all iterations, if any.
/// Sizes are checked for samples of the unknown dims (sample_sizes.h).
std::optional<LoopFault> find_loop_fault(const Program& program);

/// Returns whether a slice is aligned to `bytes` in all iterations if its buffer is.
bool starts_at_multiples(const Program& program, int buffer, int bytes);

}  // namespace lathe
