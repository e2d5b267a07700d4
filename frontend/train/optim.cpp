#include "frontend/train/optim.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

using ir::Value;

namespace {

DType compute_dtype(const Value& parameter) { return parameter.dtype() == f64 ? f64 : f32; }

/// Declares a zero-initialized state of a parameter.
Value state_for(const OptimizerStep& step, const Value& parameter, std::string_view kind) {
  const std::string name = fmt::format("{}.{}.{}", step.scope, kind, parameter.node().name);
  // A copy, because graph nodes move as the graph grows.
  const Shape shape = parameter.shape();
  return parameter.builder().argument(ir::ops::state, name, compute_dtype(parameter), shape);
}

/// Scalars are computed in f64 and rounded once, to the dtype of their multiplicand.
Value scalar(const Value& f64_scalar, DType dtype) { return ir::cast(f64_scalar, dtype); }

void update_parameter(const OptimizerStep& step, const Value& parameter, const Value& value) {
  step.update(parameter, ir::cast(value, parameter.dtype()));
}

void add_sgd(const SGD& sgd, const OptimizerStep& step, const Value& parameter, const Value& gradient, bool decay) {
  const DType dtype = compute_dtype(parameter);
  const Value p = ir::cast(parameter, dtype);
  Value g = ir::cast(gradient, dtype);
  if (decay && sgd.weight_decay != 0) g = ir::add(g, ir::mul(p, sgd.weight_decay));
  if (sgd.momentum != 0) {
    const Value buffer = state_for(step, parameter, "momentum");
    const Value moved = ir::add(ir::mul(buffer, sgd.momentum), g);
    step.update(buffer, moved);
    g = sgd.nesterov ? ir::add(g, ir::mul(moved, sgd.momentum)) : moved;
  }
  update_parameter(step, parameter, ir::sub(p, ir::mul(g, scalar(step.rate, dtype))));
}

/// 1 - beta^count, in f64.
Value bias_correction(const OptimizerStep& step, double beta) {
  return ir::sub(1.0, ir::pow(ir::constant(step.count.builder(), beta, f64), step.count));
}

/// Adam's step from `start`, the parameter value after AdamW's decay.
void add_adam_step(double beta1, double beta2, double eps, const OptimizerStep& step, const Value& parameter,
                   const Value& start, const Value& g) {
  const DType dtype = g.dtype();
  const Value m = state_for(step, parameter, "m"), v = state_for(step, parameter, "v");
  const Value m1 = ir::add(ir::mul(m, beta1), ir::mul(g, 1 - beta1));
  const Value v1 = ir::add(ir::mul(v, beta2), ir::mul(ir::mul(g, 1 - beta2), g));
  step.update(m, m1);
  step.update(v, v1);
  const Value root_correction = scalar(ir::sqrt(bias_correction(step, beta2)), dtype);
  const Value step_size = scalar(ir::div(step.rate, bias_correction(step, beta1)), dtype);
  const Value denominator = ir::add(ir::div(ir::sqrt(v1), root_correction), eps);
  update_parameter(step, parameter, ir::sub(start, ir::div(ir::mul(m1, step_size), denominator)));
}

void add_adam(const Adam& adam, const OptimizerStep& step, const Value& parameter, const Value& gradient,
              bool decay) {
  const DType dtype = compute_dtype(parameter);
  const Value p = ir::cast(parameter, dtype);
  Value g = ir::cast(gradient, dtype);
  if (decay && adam.weight_decay != 0) g = ir::add(g, ir::mul(p, adam.weight_decay));
  add_adam_step(adam.beta1, adam.beta2, adam.eps, step, parameter, p, g);
}

void add_adamw(const AdamW& adam, const OptimizerStep& step, const Value& parameter, const Value& gradient,
               bool decay) {
  const DType dtype = compute_dtype(parameter);
  Value p = ir::cast(parameter, dtype);
  if (decay && adam.weight_decay != 0)
    p = ir::mul(p, scalar(ir::sub(1.0, ir::mul(step.rate, adam.weight_decay)), dtype));
  add_adam_step(adam.beta1, adam.beta2, adam.eps, step, parameter, p, ir::cast(gradient, dtype));
}

using Fault = std::optional<std::string>;

Fault unless_positive(std::string_view name, double value) {
  if (value >= 0 && std::isfinite(value)) return std::nullopt;
  return fmt::format("{} is {}, not a finite number of 0 or more", name, value);
}
Fault unless_share(std::string_view name, double value) {
  if (value >= 0 && value < 1) return std::nullopt;
  return fmt::format("{} is {}, not in [0, 1)", name, value);
}

Fault first_of(std::initializer_list<Fault> faults) {
  const auto* const found = std::find_if(faults.begin(), faults.end(), [](const Fault& f) { return f.has_value(); });
  return found == faults.end() ? std::nullopt : *found;
}

template <class AnyAdam>
Fault fault_of_adam(const AnyAdam& adam) {
  return first_of({adam.lr.fault(), unless_share("beta1", adam.beta1), unless_share("beta2", adam.beta2),
                   unless_positive("eps", adam.eps), unless_positive("weight_decay", adam.weight_decay)});
}

Fault fault_of_sgd(const SGD& sgd) {
  return first_of(
      {sgd.lr.fault(), unless_positive("momentum", sgd.momentum), unless_positive("weight_decay", sgd.weight_decay)});
}

}  // namespace

std::optional<std::string> fault_of(const Optimizer& optimizer) {
  std::string_view name;
  Fault fault;
  if (const auto* sgd = std::get_if<SGD>(&optimizer)) name = "SGD", fault = fault_of_sgd(*sgd);
  if (const auto* adam = std::get_if<Adam>(&optimizer)) name = "Adam", fault = fault_of_adam(*adam);
  if (const auto* adamw = std::get_if<AdamW>(&optimizer)) name = "AdamW", fault = fault_of_adam(*adamw);
  return fault ? Fault(fmt::format("{}: {}", name, *fault)) : std::nullopt;
}

const Schedule& learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& kind) -> const Schedule& { return kind.lr; }, optimizer);
}

ParameterFilter matrices() {
  return [](const ir::Node& parameter) { return parameter.type.rank() >= 2; };
}

ParameterFilter names_with(std::vector<std::string> parts) {
  return [parts = std::move(parts)](const ir::Node& parameter) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return parameter.name.find(part) != std::string::npos; });
  };
}

ParameterFilter names_without(std::vector<std::string> parts) {
  return [with = names_with(std::move(parts))](const ir::Node& parameter) { return !with(parameter); };
}

void add_update(const Optimizer& optimizer, const OptimizerStep& step, const Value& parameter, const Value& gradient,
                bool decay) {
  if (const auto* sgd = std::get_if<SGD>(&optimizer)) add_sgd(*sgd, step, parameter, gradient, decay);
  if (const auto* adam = std::get_if<Adam>(&optimizer)) add_adam(*adam, step, parameter, gradient, decay);
  if (const auto* adamw = std::get_if<AdamW>(&optimizer)) add_adamw(*adamw, step, parameter, gradient, decay);
}

}  // namespace lathe
