#include "models/finetune/optimizer_settings.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/train/optimizers/optimizers.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "models/finetune/run/run_checks.h"

namespace lathe {

namespace {

std::size_t position_of(std::string_view name, const std::vector<std::string>& names, std::string_view what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw UserError(fmt::format("there is no {} {}", what, name), "train_options",
                    did_you_mean_or_list(name, {names.begin(), names.end()}, "the names are"));
  return static_cast<std::size_t>(found - names.begin());
}

/// Selects matrices other than embeddings and output layers, by their usual names.
ParameterFilter hidden_matrices() {
  return [matrix = [](const ir::Node& p) { return p.type.rank() == 2; },
          inner = names_without({"embed", "wte", "wpe", "lm_head", "shared.weight", "output"})](const ir::Node& p) {
    return matrix(p) && inner(p);
  };
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names{"adamw",     "adam", "adamw-8bit", "lion",
                                              "adafactor", "muon", "sgd",        "soap"};
  return names;
}

std::string_view name(OptimizerKind kind) { return optimizer_names()[static_cast<std::size_t>(kind)]; }

OptimizerKind optimizer_named(std::string_view name) {
  return static_cast<OptimizerKind>(position_of(name, optimizer_names(), "optimizer"));
}

const std::vector<std::string>& rate_decay_names() {
  static const std::vector<std::string> names{"cosine", "linear", "stable", "constant"};
  return names;
}

std::string_view name(RateDecay decay) { return rate_decay_names()[static_cast<std::size_t>(decay)]; }

RateDecay rate_decay_named(std::string_view name) {
  return static_cast<RateDecay>(position_of(name, rate_decay_names(), "schedule"));
}

void OptimizerSettings::check() const {
  if (lr) require_finite("lr", *lr);
  if (weight_decay) require_finite("weight_decay", *weight_decay);
  require_finite("clip", clip);
  require_at_least("warmup", warmup, 0);
}

OptimizerSettings OptimizerSettings::with_defaults(const OptimizerSettings& defaults) const {
  OptimizerSettings all = *this;
  if (!lr) all.lr = defaults.lr;
  if (!weight_decay) all.weight_decay = defaults.weight_decay;
  if (!beta2) all.beta2 = defaults.beta2;
  return all;
}

std::int64_t OptimizerSettings::warmup_steps(std::int64_t steps) const {
  return warmup > 0 ? warmup : std::clamp<std::int64_t>(steps / 10, 1, 40);
}

Schedule OptimizerSettings::schedule(std::int64_t steps) const {
  const double peak = lr.value();
  if (steps == 1) return peak;
  const std::int64_t first = warmup_steps(steps);
  if (first >= steps)
    throw UserError(fmt::format("{} warmup steps leave none of the {} training steps", first, steps), "train_warmup",
                    "give more steps or a smaller warmup");
  const double floor = peak / 10;
  switch (decay) {
    case RateDecay::linear:
      return Schedule::warmup_linear({.peak = peak, .warmup = first, .total = steps, .floor = floor});
    case RateDecay::stable:
      return Schedule::warmup_stable_decay({.peak = peak,
                                            .warmup = first,
                                            .decay = std::max<std::int64_t>(1, (steps - first) / 5),
                                            .total = steps,
                                            .floor = floor});
    case RateDecay::constant:  // with floor lr, the half cosine stays at the peak
      return Schedule::warmup_cosine({.peak = peak, .warmup = first, .total = steps, .floor = peak});
    case RateDecay::cosine: break;
  }
  return Schedule::warmup_cosine({.peak = peak, .warmup = first, .total = steps, .floor = floor});
}

OptimizerSettings::Built OptimizerSettings::build(std::int64_t steps) const {
  const Schedule rate = schedule(steps);
  const double beta_2 = beta2.value(), decay_rate = weight_decay.value();
  const AdamW adamw{.lr = rate, .beta2 = beta_2, .weight_decay = decay_rate};
  switch (kind) {
    case OptimizerKind::adam: return {Adam{.lr = rate, .beta2 = beta_2, .weight_decay = decay_rate}, {}};
    case OptimizerKind::adamw_8bit: return {AdamW8bit{.lr = rate, .beta2 = beta_2, .weight_decay = decay_rate}, {}};
    case OptimizerKind::lion: return {Lion{.lr = rate, .weight_decay = decay_rate}, {}};
    case OptimizerKind::adafactor: return {Adafactor{.lr = rate, .weight_decay = decay_rate}, {}};
    case OptimizerKind::sgd: return {SGD{.lr = rate, .momentum = 0.9, .weight_decay = decay_rate}, {}};
    case OptimizerKind::soap:  // the first basis of a dim of 4096 would take minutes
      return {SOAP{.lr = rate, .weight_decay = decay_rate, .largest_dim = 1024}, {}};
    case OptimizerKind::muon:
      return {adamw,
              {{.name = "matrices",
                .parameters = hidden_matrices(),
                .optimizer = Muon{.lr = rate, .weight_decay = decay_rate, .scale = Muon::Scale::like_adamw}}}};
    case OptimizerKind::adamw: break;
  }
  return {adamw, {}};
}

Settings OptimizerSettings::changeable(std::int64_t steps) const {
  return {{"lr", fmt::format("{}", lr.value())}, {"weight_decay", fmt::format("{}", weight_decay.value())},
          {"clip", fmt::format("{}", clip)},     {"steps", fmt::format("{}", steps)},
          {"warmup", fmt::format("{}", warmup)}, {"schedule", std::string(name(decay))}};
}

}  // namespace lathe
