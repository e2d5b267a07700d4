#include "models/finetune/optimizer_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

/// Optimizers whose betas have defaults of their own, in every kind of run.
bool has_own_betas(OptimizerKind kind) { return kind == OptimizerKind::lion || kind == OptimizerKind::soap; }
bool has_betas(OptimizerKind kind) { return kind != OptimizerKind::sgd && kind != OptimizerKind::adafactor; }
bool has_momentum(OptimizerKind kind) { return kind == OptimizerKind::sgd || kind == OptimizerKind::muon; }

void require_applies(std::string_view option, bool given, bool applies, std::string_view kind,
                     std::string_view name) {
  if (given && !applies)
    throw UserError(fmt::format("{} is given, which the {} {} does not have", option, kind, name), "train_options",
                    fmt::format("leave it out, or choose another {}", kind));
}

void require_below_one(std::string_view option, double number) {
  if (!(number >= 0 && number < 1))
    throw UserError(fmt::format("{} is {}", option, number), "train_options",
                    "give a number of at least 0 and below 1");
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names{"adamw", "adam", "adamw-8bit", "lion",         "adafactor",
                                              "muon",  "sgd",  "soap",       "schedule-free"};
  return names;
}

std::string_view name(OptimizerKind kind) { return optimizer_names()[static_cast<std::size_t>(kind)]; }

OptimizerKind optimizer_named(std::string_view name) {
  return static_cast<OptimizerKind>(position_of(name, optimizer_names(), "optimizer"));
}

const std::vector<std::string>& rate_decay_names() {
  static const std::vector<std::string> names{"cosine",       "linear", "stable",   "constant",
                                              "inverse-sqrt", "step",   "one-cycle"};
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
  if (decay_every) require_at_least("decay_every", *decay_every, 1);
  if (decay_factor) require_finite("decay_factor", *decay_factor);
  for (const auto& [option, value] : {std::pair{"beta1", beta1}, {"beta2", beta2}, {"momentum", momentum}})
    if (value) require_below_one(option, *value);
  const std::string_view optimizer = name(kind), schedule = name(schedule_kind());
  require_applies("beta1", beta1.has_value(), has_betas(kind), "optimizer", optimizer);
  require_applies("beta2", beta2.has_value(), has_betas(kind), "optimizer", optimizer);
  require_applies("momentum", momentum.has_value(), has_momentum(kind), "optimizer", optimizer);
  const bool steps_down = schedule_kind() == RateDecay::step;
  require_applies("decay_every", decay_every.has_value(), steps_down, "schedule", schedule);
  require_applies("decay_factor", decay_factor.has_value(), steps_down, "schedule", schedule);
  if (averages() && schedule_kind() != RateDecay::constant)
    throw UserError(fmt::format("the optimizer {} has no schedule {}", optimizer, schedule), "train_options",
                    "use the schedule constant, with a warm-up: an average of the weights replaces the decay");
  if (averages() && beta1 && *beta1 == 0)
    throw UserError(fmt::format("beta1 is 0 for the optimizer {}", optimizer), "train_options",
                    "its average of the weights needs a number above 0");
}

OptimizerSettings OptimizerSettings::with_defaults(const OptimizerSettings& defaults) const {
  OptimizerSettings all = *this;
  if (!lr) all.lr = defaults.lr;
  if (!weight_decay) all.weight_decay = defaults.weight_decay;
  if (!beta2 && has_betas(kind) && !has_own_betas(kind)) all.beta2 = defaults.beta2;
  return all;
}

RateDecay OptimizerSettings::schedule_kind() const {
  return decay.value_or(averages() ? RateDecay::constant : RateDecay::cosine);
}

std::int64_t OptimizerSettings::warmup_steps(std::int64_t steps) const {
  if (warmup > 0) return warmup;
  if (schedule_kind() == RateDecay::one_cycle) return std::max<std::int64_t>(2, 3 * steps / 10);
  return std::clamp<std::int64_t>(steps / 10, 1, 40);
}

Schedule OptimizerSettings::schedule(std::int64_t steps) const {
  const double peak = lr.value(), floor = peak / 10;
  if (steps == 1) return peak;
  const std::int64_t first = warmup_steps(steps);
  const auto count = [](std::int64_t number) { return static_cast<double>(number); };
  if (first >= steps)
    throw UserError(fmt::format("{} warmup steps leave none of the {} training steps", first, steps), "train_warmup",
                    "give more steps or a smaller warmup");
  switch (schedule_kind()) {
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
    case RateDecay::inverse_sqrt:
      return Schedule::inverse_sqrt({.scale = peak * std::sqrt(count(first)), .warmup = first});
    case RateDecay::step:
      return Schedule::step_decay({.rate = peak,
                                   .every = decay_every.value_or(std::max<std::int64_t>(1, (steps - first) / 3)),
                                   .gamma = decay_factor.value_or(0.1),
                                   .warmup = first});
    case RateDecay::one_cycle:
      if (first < 2)
        throw UserError("the schedule one-cycle reaches its peak after 1 warmup step", "train_warmup",
                        "give a warmup of 2 or more");
      return Schedule::one_cycle({.peak = peak, .total = steps, .rising = count(first) / count(steps)});
    case RateDecay::cosine: break;
  }
  return Schedule::warmup_cosine({.peak = peak, .warmup = first, .total = steps, .floor = floor});
}

OptimizerSettings::Built OptimizerSettings::build(std::int64_t steps) const {
  const Schedule rate = schedule(steps);
  const double wd = weight_decay.value(), b1 = beta1.value_or(kind == OptimizerKind::soap ? 0.95 : 0.9);
  const auto b2 = [&] { return beta2.value(); };
  switch (kind) {
    case OptimizerKind::adam: return {Adam{.lr = rate, .beta1 = b1, .beta2 = b2(), .weight_decay = wd}, {}};
    case OptimizerKind::adamw_8bit:
      return {AdamW8bit{.lr = rate, .beta1 = b1, .beta2 = b2(), .weight_decay = wd}, {}};
    case OptimizerKind::lion:
      return {Lion{.lr = rate, .beta1 = b1, .beta2 = beta2.value_or(0.99), .weight_decay = wd}, {}};
    case OptimizerKind::adafactor: return {Adafactor{.lr = rate, .weight_decay = wd}, {}};
    case OptimizerKind::sgd: return {SGD{.lr = rate, .momentum = momentum.value_or(0.9), .weight_decay = wd}, {}};
    case OptimizerKind::soap:  // the first basis of a dim of 4096 would take minutes
      return {SOAP{.lr = rate, .beta1 = b1, .beta2 = beta2.value_or(0.95), .weight_decay = wd, .largest_dim = 1024},
              {}};
    case OptimizerKind::schedule_free:
      return {ScheduleFreeAdamW{.lr = rate, .beta1 = average_beta1(), .beta2 = b2(), .weight_decay = wd}, {}};
    case OptimizerKind::muon:
      return {AdamW{.lr = rate, .beta1 = b1, .beta2 = b2(), .weight_decay = wd},
              {{.name = "matrices",
                .parameters = hidden_matrices(),
                .optimizer = Muon{.lr = rate,
                                  .momentum = momentum.value_or(0.95),
                                  .weight_decay = wd,
                                  .scale = Muon::Scale::like_adamw}}}};
    case OptimizerKind::adamw: break;
  }
  return {AdamW{.lr = rate, .beta1 = b1, .beta2 = b2(), .weight_decay = wd}, {}};
}

Settings OptimizerSettings::fixed() const {
  Settings settings{{"optimizer", std::string(name(kind))}};
  if (averages()) settings["beta1"] = fmt::format("{}", average_beta1());
  return settings;
}

Settings OptimizerSettings::changeable(std::int64_t steps) const {
  Settings settings{{"lr", fmt::format("{}", lr.value())}, {"weight_decay", fmt::format("{}", weight_decay.value())},
                    {"clip", fmt::format("{}", clip)},     {"steps", fmt::format("{}", steps)},
                    {"warmup", fmt::format("{}", warmup)}, {"schedule", std::string(name(schedule_kind()))}};
  const auto add = [&](const char* option, const auto& value) {
    if (value && !fixed().contains(option)) settings[option] = fmt::format("{}", *value);
  };
  add("beta1", beta1);
  add("beta2", beta2);
  add("momentum", momentum);
  add("decay_every", decay_every);
  add("decay_factor", decay_factor);
  return settings;
}

}  // namespace lathe
