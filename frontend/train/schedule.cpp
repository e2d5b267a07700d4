#include "frontend/train/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "frontend/ops/ops.h"
#include "frontend/train/own_lines.h"
#include "ir/ops/functional/functional.h"

namespace lathe {

namespace {

using At = std::source_location;

void require(bool condition, const At& at, std::string_view message, std::string_view hint) {
  if (!condition) throw UserError(Location(at), "learning rate", message, "schedule_steps", hint);
}

double to_double(std::int64_t steps) { return static_cast<double>(steps); }

struct NamedNumber {
  std::string_view name;
  double value;
};

std::optional<std::string> fault_in(std::initializer_list<NamedNumber> numbers) {
  for (const auto& [name, value] : numbers)
    if (!(value >= 0 && std::isfinite(value)))
      return fmt::format("{} is {}, not a finite number of 0 or more", name, value);
  return std::nullopt;
}

Tensor constant(const Tensor& like, double value) { return Tensor(ir::constant(like.builder(), value, f64)); }

/// Returns (cos(pi * progress) + 1) / 2 scaled to go from `from` at progress 0 to `to` at 1.
Tensor half_cosine(const Tensor& progress, double from, double to) {
  return (cos(progress * std::numbers::pi) + 1.0) * (0.5 * (from - to)) + to;
}

/// Returns the part of the steps from `first` to `last` that are done, at most 1.
Tensor progress(const Tensor& step, double first, double last) {
  return minimum((step - first) / (last - first), 1.0);
}

/// Returns the line from 0 up to `peak` at step `warmup`, and `after` from there on.
Tensor after_warmup(const Tensor& step, std::int64_t warmup, double peak, const Tensor& after) {
  if (warmup == 0) return after;
  return where(step <= to_double(warmup), step * (peak / to_double(warmup)), after);
}

void require_warmup(std::int64_t warmup, std::int64_t total, const At& at) {
  require(warmup >= 0 && total > warmup, at, fmt::format("{} steps of warm-up in {} steps in all", warmup, total),
          "the warm-up takes 0 steps or more, and fewer than all");
}

}  // namespace

Schedule::Schedule(double rate)
    : Schedule(Rate([rate](const Tensor& step) { return constant(step, rate); }), fault_in({{"lr", rate}})) {}

Schedule Schedule::warmup_cosine(const WarmupCosine& of, const At& at) {
  require_warmup(of.warmup, of.total, at);
  const auto rate = [of](const Tensor& step) {
    const Tensor done = progress(step, to_double(of.warmup), to_double(of.total));
    return after_warmup(step, of.warmup, of.peak, half_cosine(done, of.peak, of.floor));
  };
  return {Rate(rate), fault_in({{"the peak of lr", of.peak}, {"the floor of lr", of.floor}})};
}

Schedule Schedule::warmup_linear(const WarmupLinear& of, const At& at) {
  require_warmup(of.warmup, of.total, at);
  const auto rate = [of](const Tensor& step) {
    const Tensor done = progress(step, to_double(of.warmup), to_double(of.total));
    return after_warmup(step, of.warmup, of.peak, of.peak - done * (of.peak - of.floor));
  };
  return {Rate(rate), fault_in({{"the peak of lr", of.peak}, {"the floor of lr", of.floor}})};
}

Schedule Schedule::warmup_stable_decay(const WarmupStableDecay& of, const At& at) {
  require_warmup(of.warmup, of.total, at);
  require(of.decay >= 1 && of.warmup + of.decay <= of.total, at,
          fmt::format("{} steps of warm-up and {} of decay in {} steps in all", of.warmup, of.decay, of.total),
          "the decay takes 1 step or more, and both fit into all steps");
  const auto rate = [of](const Tensor& step) {
    const double total = to_double(of.total), first = to_double(of.total - of.decay);
    const Tensor done = maximum(progress(step, first, total), 0.0);
    return after_warmup(step, of.warmup, of.peak, of.peak - done * (of.peak - of.floor));
  };
  return {Rate(rate), fault_in({{"the peak of lr", of.peak}, {"the floor of lr", of.floor}})};
}

Schedule Schedule::inverse_sqrt(const InverseSqrt& of, const At& at) {
  require(of.warmup >= 1, at, fmt::format("{} steps of warm-up", of.warmup), "give 1 or more");
  const auto rate = [of](const Tensor& step) {
    return minimum(pow(step, -0.5), step * std::pow(to_double(of.warmup), -1.5)) * of.scale;
  };
  return {Rate(rate), fault_in({{"the scale of lr", of.scale}})};
}

Schedule Schedule::noam(const Noam& of, const At& at) {
  require(of.d_model >= 1, at, fmt::format("d_model is {}", of.d_model), "give the width of the model");
  return inverse_sqrt({.scale = of.factor / std::sqrt(to_double(of.d_model)), .warmup = of.warmup}, at);
}

Schedule Schedule::step_decay(const StepDecay& of, const At& at) {
  require(of.every >= 1, at, fmt::format("a decay every {} steps", of.every), "give 1 or more");
  require(of.warmup >= 0, at, fmt::format("{} steps of warm-up", of.warmup), "give 0 or more");
  const auto rate = [of](const Tensor& step) {
    const Tensor done = step - (1.0 + to_double(of.warmup));
    const Tensor decayed = pow(constant(step, of.gamma), floor(done / to_double(of.every))) * of.rate;
    return after_warmup(step, of.warmup, of.rate, decayed);
  };
  return {Rate(rate), fault_in({{"lr", of.rate}, {"gamma", of.gamma}})};
}

Schedule Schedule::one_cycle(const OneCycle& of, const At& at) {
  require(of.total >= 2, at, fmt::format("a cycle of {} steps", of.total), "give 2 or more");
  const double peak_step = of.rising * to_double(of.total);  // counted from 1
  require(peak_step > 1 && of.rising < 1, at, fmt::format("{} of {} steps before the peak", of.rising, of.total),
          "give a fraction below 1 that is more than one step");
  const double first = of.peak / of.start_factor, last = first / of.end_factor;
  const auto rate = [=](const Tensor& step) {
    const Tensor up = half_cosine(progress(step, 1, peak_step), first, of.peak);
    const Tensor down = half_cosine(progress(step, peak_step, to_double(of.total)), of.peak, last);
    return where(step <= peak_step, up, down);
  };
  return {Rate(rate), fault_in({{"the peak of lr", of.peak}, {"the first lr", first}, {"the last lr", last}})};
}

Tensor Schedule::at(const Tensor& step) const {
  ir::GraphBuilder& builder = step.builder();
  const Location line = builder.location();
  const Tensor rate = [&] {
    if (built_in_) return rate_(step);
    const detail::OwnLines own(builder);
    return rate_(step);
  }();
  const std::string given = rate.is_empty() ? "no tensor" : rate.value().type().to_string();
  if (rate.is_empty() || rate.dtype() != f64 || rate.rank() != 0)
    throw UserError(line, "learning rate", fmt::format("the schedule returns {}, not an f64 scalar", given),
                    "optimizer_options", "compute it from the step, which is an f64 scalar");
  return rate;
}

}  // namespace lathe
