#include "passes/lowering/program.h"

#include <algorithm>

#include <fmt/core.h>

namespace lathe {

bool Launch::runs(ir::ValueId id) const {
  const std::string start = fmt::format("%{} ", id.index);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(start); });
}

}  // namespace lathe
