#include "tools/options/memory_budget.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>

#include "ir/support/error.h"

namespace lathe::tools {

namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr std::array<ByteUnit, 10> units = {{{"", 1},
                                             {"B", 1},
                                             {"KB", 1e3},
                                             {"MB", 1e6},
                                             {"GB", 1e9},
                                             {"TB", 1e12},
                                             {"KiB", 0x1p10},
                                             {"MiB", 0x1p20},
                                             {"GiB", 0x1p30},
                                             {"TiB", 0x1p40}}};

}  // namespace

CLI::Option* add_memory_budget(CLI::App& command, std::string& size) {
  return command.add_option(
      "--memory-budget", size,
      "Memory limit of a run, such as 1.5GiB; values are recomputed to stay below it (default: no limit)");
}

void add_packed_weights(CLI::App& command, LowerOptions& options) {
  command.add_option_function<std::string>(
      "--packed-weights",
      [&options](const std::string& text) { options.packed_bytes = text == "off" ? 0 : parse_bytes(text); },
      "Maximum memory for copies of weights that are packed once for the matmuls of all runs; off, or a size such as "
      "512MiB (default: 1GiB, and off with --memory-budget)");
}

std::int64_t parse_bytes(std::string_view text) {
  const auto refuse = [&]() -> UserError {
    return {fmt::format("'{}' is not a size in bytes", text), "size_text",
            "give a size such as 1.5GiB, 800MB or 1000000"};
  };
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) throw refuse();
  std::string_view name = text.substr(static_cast<std::size_t>(rest - text.data()));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const ByteUnit& unit : units)
    if (unit.name == name && number * unit.bytes < 0x1p62) return static_cast<std::int64_t>(number * unit.bytes);
  throw refuse();
}

std::optional<MemoryBudget> memory_budget(const std::string& size, DimBindings dims) {
  if (size.empty()) return std::nullopt;
  return MemoryBudget{.bytes = parse_bytes(size), .dims = std::move(dims)};
}

std::optional<MemoryBudget> memory_budget(const std::string& size, const ir::Graph& graph,
                                          const Arguments& arguments) {
  if (size.empty()) return std::nullopt;
  return memory_budget(size, bound_dims(graph, arguments));
}

}  // namespace lathe::tools
