#include "frontend/train/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "ir/ops/functional/functional.h"

namespace lathe {

namespace {

using At = std::source_location;

void require(bool condition, const At& at, std::string_view message, std::string_view hint) {
  if (!condition) throw UserError(Location(at), "learning rate", message, "schedule_steps", hint);
}

double to_double(std::int64_t steps) { return static_cast<double>(steps); }

template <class... Handlers>
struct Overload : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overload(Handlers...) -> Overload<Handlers...>;

}  // namespace

Schedule Schedule::warmup_cosine(const WarmupCosine& of, const At& at) {
  require(of.warmup >= 0 && of.total > of.warmup, at,
          fmt::format("{} steps of warm-up in {} steps in all", of.warmup, of.total),
          "the warm-up takes 0 steps or more, and fewer than all");
  return Schedule(Kind(of));
}

Schedule Schedule::inverse_sqrt(const InverseSqrt& of, const At& at) {
  require(of.warmup >= 1, at, fmt::format("{} steps of warm-up", of.warmup), "give 1 or more");
  return Schedule(Kind(of));
}

Schedule Schedule::noam(const Noam& of, const At& at) {
  require(of.d_model >= 1, at, fmt::format("d_model is {}", of.d_model), "give the width of the model");
  return inverse_sqrt({.scale = of.factor / std::sqrt(to_double(of.d_model)), .warmup = of.warmup}, at);
}

Schedule Schedule::step_decay(const StepDecay& of, const At& at) {
  require(of.every >= 1, at, fmt::format("a decay every {} steps", of.every), "give 1 or more");
  return Schedule(Kind(of));
}

std::optional<std::string> Schedule::fault() const {
  using Numbers = std::vector<std::pair<std::string_view, double>>;
  const Numbers numbers = std::visit(
      Overload{
          [](const Constant& s) { return Numbers{{"lr", s.rate}}; },
          [](const WarmupCosine& s) { return Numbers{{"the peak of lr", s.peak}, {"the floor of lr", s.floor}}; },
          [](const InverseSqrt& s) { return Numbers{{"the scale of lr", s.scale}}; },
          [](const StepDecay& s) { return Numbers{{"lr", s.rate}, {"gamma", s.gamma}}; }},
      kind_);
  for (const auto& [name, value] : numbers)
    if (!(value >= 0 && std::isfinite(value)))
      return fmt::format("{} is {}, not a finite number of 0 or more", name, value);
  return std::nullopt;
}

ir::Value Schedule::at(const ir::Value& step) const {
  const auto constant = [&](const Constant& s) { return ir::constant(step.builder(), s.rate, f64); };
  const auto cosine = [&](const WarmupCosine& s) {
    const double warmup = to_double(s.warmup);
    const auto progress = ir::minimum(ir::div(ir::sub(step, warmup), to_double(s.total) - warmup), 1.0);
    const auto wave = ir::add(ir::cos(ir::mul(progress, std::numbers::pi)), 1.0);
    const auto down = ir::add(ir::mul(wave, 0.5 * (s.peak - s.floor)), s.floor);
    if (s.warmup == 0) return down;
    return ir::where(ir::le(step, warmup), ir::mul(step, s.peak / warmup), down);
  };
  const auto inverse_sqrt = [&](const InverseSqrt& s) {
    return ir::mul(ir::minimum(ir::pow(step, -0.5), ir::mul(step, std::pow(to_double(s.warmup), -1.5))), s.scale);
  };
  const auto decay = [&](const StepDecay& s) {
    const auto times = ir::floor(ir::div(ir::sub(step, 1.0), to_double(s.every)));
    return ir::mul(ir::pow(ir::constant(step.builder(), s.gamma, f64), times), s.rate);
  };
  return std::visit(Overload{constant, cosine, inverse_sqrt, decay}, kind_);
}

double Schedule::at(std::int64_t step) const {
  const auto t = static_cast<double>(step);
  const auto cosine = [&](const WarmupCosine& s) {
    const double warmup = to_double(s.warmup);
    if (t <= warmup) return s.peak * t / warmup;
    const double progress = std::min((t - warmup) / (to_double(s.total) - warmup), 1.0);
    return s.floor + (s.peak - s.floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  };
  const auto inverse_sqrt = [&](const InverseSqrt& s) {
    return s.scale * std::min(std::pow(t, -0.5), t * std::pow(to_double(s.warmup), -1.5));
  };
  return std::visit(Overload{[](const Constant& s) { return s.rate; }, cosine, inverse_sqrt,
                             [&](const StepDecay& s) {
                               return s.rate * std::pow(s.gamma, std::floor((t - 1) / to_double(s.every)));
                             }},
                    kind_);
}

}  // namespace lathe
