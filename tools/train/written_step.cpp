#include "tools/train/written_step.h"

#include <fmt/core.h>

#include <utility>

#include "ir/support/error.h"
#include "tools/options/number_option.h"
#include "tools/options/optimizer_options.h"

namespace lathe::tools {

void WrittenStep::add_to(CLI::App& command) {
  command_ = &command;
  std::set<std::string> before;
  for (const CLI::Option* option : command.get_options()) before.insert(option->get_name());
  add_optimizer_options(command, optimizer_,
                        {.lr = "0.0003",
                         .weight_decay = "0.01; for a directory: 0",
                         .beta2 = "0.999",
                         .clip = "0; for a directory: 1",
                         .schedule = "constant; with --total-steps: cosine"});
  between(command.add_option("--total-steps", total_steps_, "With --step: number of steps of the schedule"), 2,
          most_steps)
      ->default_str("the rate is constant");
  command.add_flag("--no-grad-norm", without_norm_,
                   "With --step: leave out the norm of all gradients. Without clipping, each gradient is then used "
                   "where it is computed, and not stored");
  for (const CLI::Option* option : command.get_options())
    if (!before.contains(option->get_name())) names_.insert(option->get_name());
}

OptimizerSettings WrittenStep::settings(bool as_finetune) const {
  OptimizerSettings all =
      optimizer_.with_defaults({.lr = 3e-4, .weight_decay = as_finetune ? 0 : 0.01, .beta2 = 0.999});
  if (command_->get_option("--clip")->count() == 0) all.clip = as_finetune ? 1 : 0;
  if (total_steps_ == 1) {
    const bool varies = all.decay.value_or(RateDecay::constant) != RateDecay::constant;
    for (const std::string option : {"--schedule", "--warmup", "--decay-every", "--decay-factor"})
      if (command_->get_option(option)->count() > 0 && (varies || option != "--schedule"))
        throw UserError(fmt::format("{} is given, but not the number of steps", option), "usage",
                        "give it as --total-steps");
    all.decay = RateDecay::constant;
  }
  all.check();
  return all;
}

WrittenStep::Built WrittenStep::build(bool as_finetune, DType precision) const {
  const OptimizerSettings all = settings(as_finetune);
  auto [optimizer, groups] = all.build(total_steps_);
  return {.optimizer = std::move(optimizer),
          .options = {.clip_norm = all.clip,
                      .report_norm = !without_norm_,
                      .precision = precision,
                      .decayed = matrices(),
                      .groups = std::move(groups)}};
}

}  // namespace lathe::tools
