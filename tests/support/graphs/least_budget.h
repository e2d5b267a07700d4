#pragma once

#include <optional>
#include <string>

#include "ir/support/error.h"
#include "runtime/compile.h"

namespace lathe::test {

/// Returns the smallest memory budget of a graph at these sizes, in bytes, as the error for a budget of one byte
/// states it. Returns nothing if one byte is enough. Other errors propagate.
inline std::optional<std::int64_t> least_budget(const ir::Graph& graph, CompileOptions options,
                                                const DimBindings& dims) {
  options.lower.memory = MemoryBudget{1, dims};
  try {
    (void)compile(graph, options);
  } catch (const UserError& error) {
    const std::string text = error.what();
    const auto at = text.find(" bytes are the least");
    if (at == std::string::npos) throw;
    return std::stoll(text.substr(text.rfind(' ', at - 1)));
  }
  return std::nullopt;
}

}  // namespace lathe::test
