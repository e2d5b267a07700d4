#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/options/lower_options.h"
#include "tools/options/arguments.h"

namespace lathe::tools {

/// Adds --memory-budget SIZE.
CLI::Option* add_memory_budget(CLI::App& command, std::string& size);

/// Adds --packed-weights SIZE|off. Errors: [size_text].
void add_packed_weights(CLI::App& command, LowerOptions& options);

/// Parses a size such as "1.5GiB", "800MB", "64 KiB" or a number of bytes. Returns bytes, rounded down. Throws
/// UserError [size_text].
std::int64_t parse_bytes(std::string_view text);

/// Returns the budget for runs with these dims, or nullopt if the option was not given.
std::optional<MemoryBudget> memory_budget(const std::string& size, DimBindings dims);
/// Same, with the dims that follow from the arguments.
std::optional<MemoryBudget> memory_budget(const std::string& size, const ir::Graph& graph,
                                          const Arguments& arguments);

}  // namespace lathe::tools
