#pragma once

#include <optional>
#include <string>

#include "passes/program/program.h"

namespace lathe {

struct KeptFault {
  int launch = -1, buffer = -1;  ///< -1: none
  std::string what;
};

/// Returns the first violation of the rules for kept buffers, if any: their sizes are known, only launches at the
/// start of the program write them, and these read nothing but parameters that no launch writes.
std::optional<KeptFault> find_kept_fault(const Program& program);

}  // namespace lathe
