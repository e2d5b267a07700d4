#include "tools/options/optimizer_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "tools/options/number_option.h"

namespace lathe::tools {

namespace {

constexpr double below_one = 0.999999999;

void add_optimizer_numbers(CLI::App& command, OptimizerSettings& settings, const OptimizerDefaults& defaults) {
  not_negative(command.add_option("--weight-decay", settings.weight_decay, "Weight decay of matrices"))
      ->default_str(defaults.weight_decay);
  not_negative(command.add_option("--clip", settings.clip, "Maximum gradient norm; 0 disables clipping"))
      ->default_str(defaults.clip);
  real_between(command.add_option("--beta1", settings.beta1,
                                  "Decay of the mean of the gradients; all optimizers but sgd and adafactor"),
               0, below_one)
      ->default_str("0.9; soap: 0.95");
  real_between(
      command.add_option("--beta2", settings.beta2, "Decay of the second mean; all optimizers but sgd and adafactor"),
      0, below_one)
      ->default_str(fmt::format("{}; lion: 0.99; soap: 0.95", defaults.beta2));
  real_between(command.add_option("--momentum", settings.momentum, "Momentum of sgd and muon"), 0, below_one)
      ->default_str("sgd: 0.9; muon: 0.95");
}

void add_schedule_options(CLI::App& command, OptimizerSettings& settings, const OptimizerDefaults& defaults) {
  positive(command.add_option("--lr", settings.lr, "Peak learning rate"))->default_str(defaults.lr);
  command
      .add_option_function<std::string>(
          "--schedule", [&settings](const std::string& name) { settings.decay = rate_decay_named(name); },
          "Learning rate after warmup: cosine or linear (down to a tenth of the peak), stable (constant, then linear "
          "in the last fifth), constant, inverse-sqrt (of the step), step (see --decay-every) or one-cycle (half a "
          "cosine up in the warmup, and one down)")
      ->check(CLI::IsMember(rate_decay_names()))
      ->default_str(defaults.schedule);
  between(command.add_option("--warmup", settings.warmup,
                             "Warmup steps; 0 uses a tenth of all steps, at most 40, and 0.3 of them for one-cycle"),
          0, most_steps)
      ->capture_default_str();
  between(command.add_option("--decay-every", settings.decay_every, "Schedule step: steps between decays"), 1,
          most_steps)
      ->default_str("a third of the steps");
  not_negative(command.add_option("--decay-factor", settings.decay_factor, "Schedule step: factor of each decay"))
      ->default_str("0.1");
}

}  // namespace

void add_optimizer_options(CLI::App& command, OptimizerSettings& settings, const OptimizerDefaults& defaults) {
  command
      .add_option_function<std::string>(
          "--optimizer", [&settings](const std::string& name) { settings.kind = optimizer_named(name); },
          "Optimizer; muon updates hidden matrices, and AdamW all other parameters; schedule-free evaluates and "
          "writes averages of the weights")
      ->check(CLI::IsMember(optimizer_names()))
      ->default_str(std::string(name(settings.kind)));
  add_optimizer_numbers(command, settings, defaults);
  add_schedule_options(command, settings, defaults);
}

}  // namespace lathe::tools
