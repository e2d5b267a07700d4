#include "tools/options/tune_option.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "tools/options/number_option.h"

namespace lathe::tools {

CLI::Option* add_tune(CLI::App& command, double& seconds) {
  const std::string standard = fmt::format("--tune{{{}}}", TuneOptions{}.seconds);
  CLI::Option* const tune = command.add_flag(
      standard, seconds,
      "Use the fastest matmul tiles on this machine: from the cache, or measured now for at most this many seconds");
  return real_between(tune, 0.001, 1e6);
}

std::optional<TuneOptions> tune_options(double seconds, const DimBindings& dims) {
  if (seconds <= 0) return std::nullopt;
  return TuneOptions{.dims = dims, .seconds = seconds};
}

}  // namespace lathe::tools
