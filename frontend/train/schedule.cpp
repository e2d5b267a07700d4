#include "frontend/train/schedule.h"

#include <fmt/core.h>

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

template <class... Handlers>
struct Overload : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overload(Handlers...) -> Overload<Handlers...>;

}  // namespace

Schedule Schedule::warmup_cosine(double peak, std::int64_t warmup, std::int64_t total, double floor, const At& at) {
  require(warmup >= 0 && total > warmup, at, fmt::format("{} steps of warm-up in {} steps in all", warmup, total),
          "the warm-up takes 0 steps or more, and fewer than all");
  return Schedule(Kind(WarmupCosine{peak, static_cast<double>(warmup), static_cast<double>(total), floor}));
}

Schedule Schedule::inverse_sqrt(double scale, std::int64_t warmup, const At& at) {
  require(warmup >= 1, at, fmt::format("{} steps of warm-up", warmup), "give 1 or more");
  return Schedule(Kind(InverseSqrt{scale, static_cast<double>(warmup)}));
}

Schedule Schedule::noam(double factor, std::int64_t d_model, std::int64_t warmup, const At& at) {
  require(d_model >= 1, at, fmt::format("d_model is {}", d_model), "give the width of the model");
  return inverse_sqrt(factor / std::sqrt(static_cast<double>(d_model)), warmup, at);
}

Schedule Schedule::step_decay(double rate, std::int64_t every, double gamma, const At& at) {
  require(every >= 1, at, fmt::format("a decay every {} steps", every), "give 1 or more");
  return Schedule(Kind(StepDecay{rate, static_cast<double>(every), gamma}));
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
    const auto progress = ir::minimum(ir::div(ir::sub(step, s.warmup), s.total - s.warmup), 1.0);
    const auto wave = ir::add(ir::cos(ir::mul(progress, std::numbers::pi)), 1.0);
    const auto down = ir::add(ir::mul(wave, 0.5 * (s.peak - s.floor)), s.floor);
    if (s.warmup == 0) return down;
    return ir::where(ir::le(step, s.warmup), ir::mul(step, s.peak / s.warmup), down);
  };
  const auto inverse_sqrt = [&](const InverseSqrt& s) {
    return ir::mul(ir::minimum(ir::pow(step, -0.5), ir::mul(step, std::pow(s.warmup, -1.5))), s.scale);
  };
  const auto decay = [&](const StepDecay& s) {
    const auto times = ir::floor(ir::div(ir::sub(step, 1.0), s.every));
    return ir::mul(ir::pow(ir::constant(step.builder(), s.gamma, f64), times), s.rate);
  };
  return std::visit(Overload{constant, cosine, inverse_sqrt, decay}, kind_);
}

double Schedule::at(std::int64_t step) const {
  const auto t = static_cast<double>(step);
  const auto cosine = [&](const WarmupCosine& s) {
    if (t <= s.warmup) return s.peak * t / s.warmup;
    const double progress = std::min((t - s.warmup) / (s.total - s.warmup), 1.0);
    return s.floor + (s.peak - s.floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  };
  const auto inverse_sqrt = [&](const InverseSqrt& s) {
    return s.scale * std::min(std::pow(t, -0.5), t * std::pow(s.warmup, -1.5));
  };
  return std::visit(
      Overload{[](const Constant& s) { return s.rate; }, cosine, inverse_sqrt,
               [&](const StepDecay& s) { return s.rate * std::pow(s.gamma, std::floor((t - 1) / s.every)); }},
      kind_);
}

}  // namespace lathe
