#include "tools/options/optimizer_options.h"

#include <CLI/CLI.hpp>

namespace lathe::tools {

void add_optimizer_options(CLI::App& command, OptimizerSettings& settings) {
  command
      .add_option_function<std::string>(
          "--optimizer", [&settings](const std::string& name) { settings.kind = optimizer_named(name); },
          "Optimizer; muon updates hidden matrices, and AdamW all other parameters")
      ->check(CLI::IsMember(optimizer_names()))
      ->default_str(std::string(name(settings.kind)));
  command
      .add_option_function<std::string>(
          "--schedule", [&settings](const std::string& name) { settings.decay = rate_decay_named(name); },
          "Learning rate after warmup: cosine or linear (down to a tenth of the peak), stable (constant, then linear "
          "in "
          "the last fifth) or constant")
      ->check(CLI::IsMember(rate_decay_names()))
      ->default_str(std::string(name(settings.decay)));
}

}  // namespace lathe::tools
