#include "frontend/train/optimizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "frontend/train/own_lines.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

namespace {

Optimizer::GroupRule for_each(Optimizer::Rule rule) {
  return [rule = std::move(rule)](std::span<ParameterUpdate> updates) {
    for (ParameterUpdate& update : updates) rule(update);
  };
}

std::string type_of(const Tensor& tensor) {
  return tensor.is_empty() ? "an empty tensor" : tensor.value().type().to_string();
}

}  // namespace

ParameterUpdate::ParameterUpdate(OptimizerStep step, const ir::Value& parameter, const ir::Value& gradient,
                                 bool decays)
    : step_(std::move(step)),
      name_(parameter.node().name),
      stored_(parameter),
      gradient_(gradient),
      decays_(decays) {}

void ParameterUpdate::refuse(const std::string& message, std::string_view hint, const Where& at) const {
  throw UserError(detail::line_of(stored_.builder(), at), "optimizer",
                  fmt::format("the update of {}: {}", name_, message), "optimizer_rule", hint);
}

Tensor ParameterUpdate::parameter() const { return Tensor(ir::cast(stored_, dtype())); }

Tensor ParameterUpdate::gradient() const { return Tensor(ir::cast(gradient_, dtype())); }

std::vector<std::int64_t> ParameterUpdate::sizes() const {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : shape()) {
    const std::optional<std::int64_t> size = dim.value();
    if (!size)
      throw UserError(stored_.builder().location(), "optimizer",
                      fmt::format("the update of {}: the size of {} is not known", name_, dim.to_string()),
                      "optimizer_rule", "declare the parameter with numbers, or use AdamW for it");
    sizes.push_back(*size);
  }
  return sizes;
}

Tensor ParameterUpdate::rounded(const Tensor& scalar, Where at) const { return scalar.to(dtype(), at); }

Tensor ParameterUpdate::state(std::string_view kind, Where at) { return state(kind, dtype(), Shape(shape()), at); }

Tensor ParameterUpdate::state(std::string_view kind, DType dtype, const Shape& shape, Where at) {
  return declare(kind, "." + name_, dtype, shape, at);
}

Tensor ParameterUpdate::group_state(std::string_view kind, Where at) {
  return declare(kind, step_.group.empty() ? "" : "." + step_.group, f64, {}, at);
}

Tensor ParameterUpdate::declare(std::string_view kind, const std::string& suffix, DType dtype, const Shape& shape,
                                const Where& at) {
  ir::GraphBuilder& builder = stored_.builder();
  const detail::Line line(builder, at);
  const std::string name = fmt::format("{}.{}{}", step_.scope, kind, suffix);
  states_.push_back({std::string(kind), Tensor(builder.argument(ir::ops::state, name, dtype, shape))});
  return states_.back().now;
}

void ParameterUpdate::set_state(const Tensor& state, const Tensor& next, Where at) {
  const auto found = std::ranges::find_if(
      states_, [&](const State& each) { return !state.is_empty() && each.now.value().id() == state.value().id(); });
  if (found == states_.end())
    refuse(fmt::format("set_state() of {}, which is no state of it", type_of(state)), "give it a result of state()",
           at);
  if (found->is_set) refuse(fmt::format("the state {} is set twice", found->kind), "set it once", at);
  if (next.is_empty() || next.dtype() != state.dtype() || next.shape() != state.shape())
    refuse(fmt::format("the state {} is {}, its next value {}", found->kind, type_of(state), type_of(next)),
           "give it a value of its own type", at);
  found->is_set = true;
  const detail::Line line(stored_.builder(), at);
  step_.update(state.value(), next.value());
}

void ParameterUpdate::set_parameter(const Tensor& next, Where at) {
  if (is_set_) refuse("the parameter is set twice", "set it once", at);
  if (next.is_empty() || !is_float(next.dtype()) || next.shape() != shape())
    refuse(fmt::format("the parameter is {}, its next value {}", stored_.type().to_string(), type_of(next)),
           "give it a float value of its shape", at);
  is_set_ = true;
  const detail::Line line(stored_.builder(), at);
  step_.update(stored_, ir::cast(next.value(), stored_.dtype()));
}

void ParameterUpdate::require_set(const Location& line, std::string_view optimizer) const {
  const auto require = [&](bool is_set, const std::string& name) {
    if (!is_set)
      throw UserError(line, "optimizer", fmt::format("{} sets no next value of {}", optimizer, name),
                      "optimizer_rule", "call set_parameter() once, and set_state() once per state");
  };
  require(is_set_, name_);
  for (const State& state : states_) require(state.is_set, fmt::format("the state {} of {}", state.kind, name_));
}

Optimizer::Optimizer(std::string name, Schedule lr, GroupRule rule)
    : name_(std::move(name)), lr_(std::move(lr)), rule_(std::move(rule)) {}

Optimizer::Optimizer(std::string name, Schedule lr, Rule rule)
    : Optimizer(std::move(name), std::move(lr), for_each(std::move(rule))) {}

Optimizer Optimizer::built_in(std::string name, Schedule lr, GroupRule rule, detail::Fault fault) {
  Optimizer made(std::move(name), std::move(lr), std::move(rule));
  made.fault_ = std::move(fault);
  made.built_in_ = true;
  return made;
}

Optimizer Optimizer::built_in(std::string name, Schedule lr, Rule rule, detail::Fault fault) {
  return built_in(std::move(name), std::move(lr), for_each(std::move(rule)), std::move(fault));
}

detail::Fault Optimizer::fault() const {
  const detail::Fault& first = lr_.fault() ? lr_.fault() : fault_;
  return first ? detail::Fault(fmt::format("{}: {}", name_, *first)) : std::nullopt;
}

void Optimizer::add_updates(std::span<ParameterUpdate> updates) const {
  if (updates.empty()) return;
  ir::GraphBuilder& builder = updates.front().step().builder();
  const Location line = builder.location();
  if (built_in_) {
    rule_(updates);
  } else {
    const detail::OwnLines own(builder);
    rule_(updates);
  }
  for (const ParameterUpdate& update : updates) update.require_set(line, name_);
}

}  // namespace lathe
