#include "tools/options/optimizer_options.h"

#include <CLI/CLI.hpp>

namespace lathe::tools {

void add_optimizer_options(CLI::App& command, OptimizerKind& optimizer, RateDecay& decay) {
  command
      .add_option_function<std::string>(
          "--optimizer", [&optimizer](const std::string& name) { optimizer = optimizer_named(name); },
          "Optimizer; muon updates hidden matrices, and AdamW all other parameters")
      ->check(CLI::IsMember(optimizer_names()))
      ->default_str(std::string(name(optimizer)));
  command
      .add_option_function<std::string>(
          "--schedule", [&decay](const std::string& name) { decay = rate_decay_named(name); },
          "Learning rate after warmup: cosine or linear (down to a tenth of the peak), stable (constant, then linear "
          "in "
          "the last fifth) or constant")
      ->check(CLI::IsMember(rate_decay_names()))
      ->default_str(std::string(name(decay)));
}

}  // namespace lathe::tools
