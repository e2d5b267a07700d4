#include "tools/options/tune_option.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

namespace lathe::tools {

CLI::Option* add_tune(CLI::App& command, double& seconds) {
  const std::string standard = fmt::format("--tune{{{}}}", TuneOptions{}.seconds);
  return command
      .add_flag(
          standard, seconds,
          "Take the tiles of products that are fastest here; the cache keeps them, the rest is measured now, for "
          "at most that many seconds")
      ->check(CLI::Range(0.001, 1e6));
}

std::optional<TuneOptions> tune_options(double seconds, const DimBindings& dims) {
  if (seconds <= 0) return std::nullopt;
  return TuneOptions{.dims = dims, .seconds = seconds};
}

}  // namespace lathe::tools
