#include "frontend/train/optimizers/schedule_free.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/option_faults.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

namespace {

/// Advances the sum of the weights, and returns the share of this step in it: an f64 scalar.
Tensor share_of_step(const ScheduleFreeAdamW& options, ParameterUpdate& first) {
  const Tensor largest_rate = first.group_state("largest_rate"), weight_sum = first.group_state("weight_sum");
  const Tensor largest = maximum(largest_rate, first.exact_rate());
  const Tensor weight = pow(first.step(), options.step_power) * pow(largest, options.rate_power);
  const Tensor sum = weight_sum + weight;
  first.set_state(largest_rate, largest);
  first.set_state(weight_sum, sum);
  return where(sum > 0.0, weight / sum, 0.0);
}

void add_step(const ScheduleFreeAdamW& options, ParameterUpdate& update, const Tensor& share) {
  const Tensor y = update.parameter(), g = update.gradient(), v = update.state("v"), stored_z = update.state("z");
  const Tensor z = where(update.step() == 1.0, y, stored_z);
  const Tensor v1 = v * options.beta2 + g * g * (1 - options.beta2);
  update.set_state(v, v1);
  const Tensor correction = update.rounded(detail::bias_correction(update, options.beta2));
  Tensor direction = g / (sqrt(v1 / correction) + options.eps);
  if (update.decays() && options.weight_decay != 0) direction = direction + y * options.weight_decay;
  update.set_state(stored_z, z - direction * update.rate());
  const Tensor step_of_y = update.rounded(update.exact_rate() * (options.beta1 * (1.0 - share) - 1.0));
  update.set_parameter(y + (z - y) * update.rounded(share) + direction * step_of_y);
}

}  // namespace

ScheduleFreeAdamW::operator Optimizer() const {
  const auto rule = [options = *this](std::span<ParameterUpdate> updates) {
    const Tensor share = share_of_step(options, updates.front());
    for (ParameterUpdate& update : updates) add_step(options, update, share);
  };
  using namespace detail;
  const Fault positive_beta1 = beta1 > 0 ? Fault() : Fault("beta1 is 0, and the average needs a positive one");
  return Optimizer::built_in("ScheduleFreeAdamW", lr, Optimizer::GroupRule(rule),
                             first_of({adam_fault(*this), positive_beta1, unless_positive("step_power", step_power),
                                       unless_positive("rate_power", rate_power)}));
}

Tensor schedule_free_average(const Tensor& y, const Tensor& z, double beta1, Where at) {
  const CallSite site(y.builder(at), at);
  return y + (z - y) * (1 - 1 / beta1);
}

std::vector<std::string> schedule_free_parameters(const ir::Graph& step, std::string_view optimizer) {
  const std::string prefix = fmt::format("{}.z.", optimizer);
  std::vector<std::string> names;
  for (const ir::ValueId id : step.arguments())
    if (step[id].op == &ir::ops::state && step[id].name.starts_with(prefix))
      names.push_back(step[id].name.substr(prefix.size()));
  return names;
}

ir::Graph schedule_free_evaluation(const ir::Graph& forward, std::span<const std::string> parameters, double beta1,
                                   std::string_view optimizer) {
  ir::GraphBuilder builder(forward.name);
  ir::Rebuilder to(builder, forward);
  const auto average = [&](const ir::Value& y) {
    const std::string name = y.node().name, step = fmt::format("{}.step", optimizer);
    const DType dtype = at_least_f32(y.dtype());
    const std::optional<ir::Value> found = builder.find_argument(step);
    const ir::Value updates = found ? *found : builder.argument(ir::ops::state, step, i64, {});
    const ir::Value z =
        builder.argument(ir::ops::state, fmt::format("{}.z.{}", optimizer, name), dtype, Shape(y.shape()));
    const ir::Value exact = ir::cast(y, dtype);
    const ir::Value x = ir::add(exact, ir::mul(ir::sub(z, exact), 1 - 1 / beta1));
    const ir::Value now = ir::cast(ir::where(ir::eq(updates, 0.0), exact, x), y.dtype());
    builder.set_name(now, "average." + name);
    return now;
  };
  for (const ir::ValueId id : ir::all_values(forward)) {
    const ir::Node& node = forward[id];
    const ir::Value copy = to.copy(node);
    const bool averaged = node.op == &ir::ops::parameter && std::ranges::count(parameters, node.name) > 0;
    const ir::GraphBuilder::At at(builder, node.loc);
    to.set(id, averaged ? average(copy) : copy);
  }
  to.close();
  return builder.finish();
}

}  // namespace lathe
