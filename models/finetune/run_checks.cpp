#include "models/finetune/run_checks.h"

#include <fmt/core.h>

#include <cmath>

#include "ir/support/error.h"
#include "runtime/ranks/agreement.h"

namespace lathe {

void require_at_least(std::string_view option, std::int64_t number, std::int64_t least) {
  if (number < least)
    throw UserError(fmt::format("{} is {}", option, number), "train_options",
                    fmt::format("give a number of at least {}", least));
}

void require_finite(std::string_view option, double number) {
  if (!(number >= 0) || !std::isfinite(number))
    throw UserError(fmt::format("{} is {}", option, number), "train_options", "give a finite number of 0 or more");
}

void check_step_options(const CompileOptions& options) {
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw UserError(fmt::format("compile.{} is given, which the training run sets", option), "train_options",
                      "leave it out");
  };
  refuse(options.mode != Mode::training, "mode");
  refuse(options.parameters.has_value(), "parameters");
  refuse(options.share_states, "share_states");
  refuse(!options.reserve.empty(), "reserve");
  refuse(!options.sizes.empty(), "sizes");
}

bool is_first_rank(const std::shared_ptr<Ranks>& ranks) { return !ranks || ranks->rank() == 0; }

void require_same_settings(const std::shared_ptr<Ranks>& ranks, const std::vector<Settings>& settings) {
  if (!ranks) return;
  std::vector<Claim> claims;
  for (const Settings& each : settings)
    for (const auto& [name, value] : each)
      claims.push_back({"the setting " + name, value, "start all processes with the same options"});
  require_agreement(*ranks, claims);
}

}  // namespace lathe
