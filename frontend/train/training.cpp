#include "frontend/train/training.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "frontend/graph.h"
#include "frontend/train/named_gradient.h"
#include "frontend/train/parameter_choice.h"
#include "frontend/train/step_error.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/nearest.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/loop_views.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dtypes/mixed_precision.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using detail::require_at;
using ir::GraphBuilder;
using ir::Value;

namespace {

/// Returns the graph, and the bodies of its loops, in mixed precision.
ir::Graph in_precision(const ir::Graph& graph, DType precision) {
  const auto mixed = [&](const ir::Graph& each) { return ir::mixed_precision(each, precision); };
  return mixed(ir::on_bodies(graph, mixed));
}

constexpr std::string_view about_options = "docs/optimizers.md describes each option";

/// A parameter and the gradient for its update.
struct Trained {
  Value parameter;
  Value gradient;
  const ParameterGroup* group = nullptr;  ///< null: uses the step's own optimizer
};

void check_groups(const Location& line, const std::vector<ParameterGroup>& groups) {
  std::set<std::string_view> names;
  for (const ParameterGroup& group : groups) {
    require_at(line, !group.name.empty(), "a group of parameters has no name", "train_groups", "give it one");
    require_at(line, names.insert(group.name).second, fmt::format("two groups are named {}", group.name),
               "train_groups", "give each a name of its own");
    require_at(line, group.parameters != nullptr,
               fmt::format("the group {} does not say which parameters", group.name), "train_groups",
               "give it a ParameterFilter, such as names_with({\"bias\"})");
    if (const auto fault = group.optimizer.fault())
      require_at(line, false, fmt::format("the group {}: {}", group.name, *fault), "optimizer_options",
                 about_options);
  }
}

/// Rejects optimizer names whose states "optimizer.<name>.<kind>.<parameter>" could clash with those of an unnamed
/// optimizer.
void check_name(const Location& line, const std::string& name) {
  constexpr std::string_view kinds[] = {"step", "micro_step", "accumulated", "loss_scale", "momentum",
                                        "m",    "v",          "average",     "row",        "column",
                                        "z",    "m_scale",    "v_scale"};
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  require_at(line, std::ranges::all_of(name, is_letter),
             fmt::format("the optimizer's name '{}' has other characters than letters, digits, _ and -", name),
             "train_options", "it is part of the names of states");
  require_at(line, std::ranges::find(kinds, name) == std::end(kinds),
             fmt::format("the optimizer's name '{}' is that of a state of optimizers", name), "train_options",
             "give it another");
}

std::string scope_of(const TrainingOptions& options) {
  return options.name.empty() ? "optimizer" : "optimizer." + options.name;
}

/// Rejects options without an effect, and a graph that has the states of this optimizer.
void check_effects(const Location& line, const ir::Graph& graph, const TrainingOptions& options) {
  const LossScaling &scaling = options.loss_scaling, usual;
  require_at(
      line,
      options.precision == f16 || (scaling.start == usual.start && scaling.growth_interval == usual.growth_interval),
      fmt::format("loss_scaling is set, and precision is {}", name(options.precision)), "train_options",
      "only f16 scales the loss: leave loss_scaling out, or set precision to f16");
  // A filter by rank, such as matrices(), may choose nothing in a model of vectors; a misspelled name never does.
  const auto is_decayed = [&](ir::ValueId id) {
    ir::Node matrix = graph[id];
    matrix.type = ir::TensorType::contiguous(matrix.type.dtype, {1, 1});
    return graph[id].op == &ir::ops::parameter && (options.decayed(graph[id]) || options.decayed(matrix));
  };
  require_at(line, !options.decayed || std::ranges::any_of(graph.arguments(), is_decayed),
             "`decayed` chooses no parameter of the graph", "train_options",
             "for no weight decay at all, leave it out and set the optimizer's weight_decay to 0");
  const std::string count = scope_of(options) + ".step";
  require_at(line, !graph.find_argument(count).valid(),
             fmt::format("@{} is a training step already: it has the state {}", graph.name, count), "argument_name",
             "train the graph of the forward pass, or give a second optimizer a TrainingOptions::name");
}

void check(const Value& loss, const Optimizer& optimizer, const TrainingOptions& options) {
  const Location& line = loss.builder().location();
  const auto require = [&](bool condition, const std::string& message, std::string_view label,
                           std::string_view hint) { require_at(line, condition, message, label, hint); };
  require(is_float(loss.dtype()) && loss.rank() == 0,
          fmt::format("the loss ({} at {}) is {}, not a float scalar",
                      loss.node().name.empty() ? loss.node().op->name.value : std::string_view(loss.node().name),
                      loss.node().loc.place(), loss.type().to_string()),
          "train_loss", "take its sum or mean over every dim");
  if (const auto fault = optimizer.fault()) require(false, *fault, "optimizer_options", about_options);
  check_groups(line, options.groups);
  check_name(line, options.name);
  require(options.accumulate >= 1, fmt::format("{} micro-batches an update", options.accumulate), "train_options",
          "accumulate is 1 or more");
  require(options.average_decay >= 0 && options.average_decay < 1,
          fmt::format("an average with decay {}", options.average_decay), "train_options",
          "average_decay is 0 (no average) or below 1");
  require(options.clip_norm >= 0, fmt::format("clipping to the norm {}", options.clip_norm), "train_options",
          "clip_norm is 0 (no clipping) or positive");
  const LossScaling& scaling = options.loss_scaling;
  require(scaling.start > 0 && scaling.start <= std::numeric_limits<float>::max() && scaling.growth_interval >= 1,
          fmt::format("a loss scale from {}, doubled after {} steps", scaling.start, scaling.growth_interval),
          "train_options", "the scale is a positive number of f32, the steps are 1 or more");
  check_effects(line, loss.builder().graph(), options);
}

/// Returns the trainable parameters that the loss depends on, with the gradients of loss * scale.
std::vector<Trained> differentiate(const Value& loss, const TrainingOptions& options,
                                   const std::optional<Value>& scale) {
  detail::ParameterChoice choice = detail::choose_parameters(loss.builder(), options);
  const auto found = ir::gradients(loss.builder(), loss, scale, choice.candidates, ir::Unused::zeros);
  std::vector<Trained> trained;
  std::vector<Value> parameters;
  for (std::size_t i = 0; i < choice.candidates.size(); ++i) {
    const Value& parameter = choice.candidates[i];
    if (found.reached[i]) {
      trained.push_back({parameter, found[i]});
      parameters.push_back(parameter);
    } else {
      choice.unused.push_back(parameter.node().name);
    }
  }
  if (trained.empty()) detail::throw_none_trained(choice, loss);
  if (options.note) options.note(detail::summary_of(choice, parameters));
  return trained;
}

/// Assigns to each parameter the first group that contains it.
void choose_groups(std::vector<Trained>& trained, const std::vector<ParameterGroup>& groups, const Location& line) {
  std::set<const ParameterGroup*> used;
  for (Trained& each : trained)
    for (const ParameterGroup& group : groups) {
      if (!group.parameters(each.parameter.node())) continue;
      each.group = &group;
      used.insert(&group);
      break;
    }
  for (const ParameterGroup& group : groups)
    require_at(line, used.contains(&group), fmt::format("the group {} has no parameter", group.name), "train_groups",
               "choose parameters that are trained and in no group before");
}

/// Adds the gradients to accumulators and replaces each one by the mean so far. Returns whether this run completes
/// the update.
Value accumulate(std::vector<Trained>& trained, std::int64_t times, const std::string& scope) {
  GraphBuilder& builder = trained.front().parameter.builder();
  const Value counter = builder.argument(ir::ops::state, scope + ".micro_step", i64, {});
  const Value runs = ir::add(counter, 1.0);
  const Value complete = ir::eq(runs, times);
  builder.update(counter, ir::where(complete, 0.0, runs));
  for (Trained& each : trained) {
    const std::string name = fmt::format("{}.accumulated.{}", scope, each.parameter.node().name);
    const Shape shape = each.parameter.shape();
    const DType dtype = at_least_f32(each.parameter.dtype());
    const Value sum = builder.argument(ir::ops::state, name, dtype, shape);
    const Value mean = ir::add(sum, ir::div(ir::cast(each.gradient, dtype), times));
    builder.update(sum, ir::where(complete, 0.0, mean));
    each.gradient = mean;
  }
  return complete;
}

/// Applies the user's hook to the gradients.
void run_hook(std::vector<Trained>& trained, const GradientHook& hook) {
  std::vector<NamedGradient> gradients;
  for (const Trained& each : trained)
    gradients.push_back({each.parameter.node().name, Tensor(each.parameter), Tensor(each.gradient)});
  detail::run_hook(hook, trained.front().parameter.builder(), gradients);
  for (std::size_t i = 0; i < trained.size(); ++i) trained[i].gradient = gradients[i].gradient.value();
}

void report_gradients(const std::vector<Trained>& trained, const ParameterFilter& reported, const Location& line) {
  std::vector<std::string_view> others;
  for (const Trained& each : trained) {
    const ir::Node& parameter = each.parameter.node();
    if (!reported(parameter)) {
      others.push_back(parameter.name);
      continue;
    }
    each.parameter.builder().output("grad." + parameter.name, each.gradient);
  }
  require_at(line, others.size() < trained.size(), "reported_gradients chooses no parameter that is trained",
             "reported_gradients", fmt::format("trained are: {}", list_of(others)));
}

/// Returns the global norm of the gradients; nothing if neither clipping, the options nor f16 need it.
std::optional<Value> norm_of(const std::vector<Trained>& trained, const TrainingOptions& options) {
  if (options.clip_norm == 0 && !options.report_norm && options.precision != f16) return std::nullopt;
  std::vector<Value> gradients;
  for (const Trained& each : trained) gradients.push_back(each.gradient);
  return global_norm(gradients);
}

/// Clips by the global norm.
void clip(std::vector<Trained>& trained, double limit, const Value& norm) {
  const Value factor = ir::minimum(ir::div(limit, ir::add(norm, 1e-6)), 1.0);
  for (Trained& each : trained) {
    const DType dtype = at_least_f32(each.gradient.dtype());
    each.gradient = ir::mul(ir::cast(each.gradient, dtype), ir::cast(factor, dtype));
  }
}

/// Declares updates that apply only if `condition` holds.
auto only_if(GraphBuilder& builder, const std::optional<Value>& condition) {
  return [&builder, condition](const Value& state, const Value& value) {
    builder.update(state, condition ? ir::where(*condition, value, state) : value);
  };
}

/// Updates the loss scale. Returns the condition of a parameter update: the micro-batches are `complete` and their
/// gradients are finite. The norm decides that; if it overflows f32, the step is skipped too.
Value skip_if_not_finite(const LossScale& scaling, const Value& norm, const std::optional<Value>& complete) {
  GraphBuilder& builder = norm.builder();
  const Value finite = ir::le(norm, std::numeric_limits<float>::max());
  scaling.advance(finite, only_if(builder, complete));
  const Value overflow = ir::logical_not(finite);
  builder.output("loss_scale", scaling.scale());
  builder.output("skipped", complete ? ir::logical_and(*complete, overflow) : overflow);
  return complete ? ir::logical_and(*complete, finite) : finite;
}

/// Declares the next value of a state.
using UpdateState = std::function<void(const Value& state, const Value& value)>;

OptimizerStep step_of(const Optimizer& optimizer, const Tensor& count, const std::string& scope,
                      const std::string& group, const UpdateState& update) {
  return {count, optimizer.learning_rate().at(count), scope, group, update};
}

/// Counts the updates and returns the state shared by the updates of all parameters.
OptimizerStep begin_update(GraphBuilder& builder, const Optimizer& optimizer, const std::optional<Value>& complete,
                           const std::string& scope) {
  const auto update = only_if(builder, complete);
  const Value done = builder.argument(ir::ops::state, scope + ".step", i64, {});
  const Value next = ir::add(done, 1.0);
  update(done, next);
  const Value count = ir::cast(next, f64);
  return step_of(optimizer, Tensor(count), scope, {}, update);
}

/// Declares updates like `step`, and for parameters also those of their moving averages.
UpdateState with_averages(const OptimizerStep& step, double decay) {
  return
      [update = step.update, count = step.count, scope = step.scope, decay](const Value& state, const Value& next) {
        update(state, next);
        if (state.node().op != &ir::ops::parameter) return;
        GraphBuilder& builder = state.builder();
        const DType dtype = at_least_f32(state.dtype());
        const std::string name = fmt::format("{}.average.{}", scope, state.node().name);
        const Value average = builder.argument(ir::ops::state, name, state.dtype(), Shape(state.shape()));
        const Value p = ir::cast(next, dtype), before = ir::cast(average, dtype);
        const Value moved = ir::add(before, ir::mul(ir::sub(p, before), 1 - decay));
        const Value first = ir::eq(count.value(), 1.0);
        update(average, ir::cast(ir::where(first, p, moved), state.dtype()));
      };
}

/// Adds the updates of the parameters of `group`; if null, of all parameters without a group.
void add_updates(const std::vector<Trained>& trained, const ParameterGroup* group, const Optimizer& optimizer,
                 const OptimizerStep& step, const TrainingOptions& options) {
  std::vector<ParameterUpdate> updates;
  for (const Trained& each : trained)
    if (each.group == group)
      updates.emplace_back(step, each.parameter, each.gradient,
                           !options.decayed || options.decayed(each.parameter.node()));
  optimizer.add_updates(updates);
}

/// Builds everything except the output of the loss.
void build(const Value& loss, const Optimizer& optimizer, const TrainingOptions& options) {
  check(loss, optimizer, options);
  const FloatEnvironment environment;
  GraphBuilder& builder = loss.builder();
  std::optional<LossScale> scaling;
  const std::string scope = scope_of(options);
  if (options.precision == f16) scaling.emplace(builder, options.loss_scaling, scope);
  auto trained =
      differentiate(loss, options, scaling ? std::optional(ir::cast(scaling->scale(), loss.dtype())) : std::nullopt);
  const Location line = builder.location().known() ? builder.location() : loss.node().loc;
  const GraphBuilder::At at(builder, line.known() ? Location(line.file(), line.line(), scope) : line);
  choose_groups(trained, options.groups, line);
  if (scaling)
    for (Trained& each : trained) each.gradient = scaling->unscaled(each.gradient);
  std::optional<Value> complete;
  if (options.accumulate > 1) complete = accumulate(trained, options.accumulate, scope);
  if (options.gradient_hook) run_hook(trained, options.gradient_hook);
  if (options.reported_gradients) report_gradients(trained, options.reported_gradients, line);
  const std::optional<Value> norm = norm_of(trained, options);
  if (options.clip_norm > 0) clip(trained, options.clip_norm, *norm);
  if (scaling) complete = skip_if_not_finite(*scaling, *norm, complete);
  OptimizerStep step = begin_update(builder, optimizer, complete, scope);
  if (options.average_decay > 0) step.update = with_averages(step, options.average_decay);
  add_updates(trained, nullptr, optimizer, step, options);
  std::vector<std::pair<std::string, Tensor>> rates{{"learning_rate", step.rate}};
  for (const ParameterGroup& group : options.groups) {
    const OptimizerStep own = step_of(group.optimizer, step.count, scope, group.name, step.update);
    add_updates(trained, &group, group.optimizer, own, options);
    rates.emplace_back("learning_rate." + group.name, own.rate);
  }
  advance_random_states(builder);
  if (options.report_norm) builder.output("grad_norm", ir::cast(*norm, loss.dtype()));
  for (const auto& [name, rate] : rates) builder.output(name, ir::cast(rate.value(), loss.dtype()));
}

}  // namespace

Value global_norm(std::span<const Value> values) {
  LATHE_ASSERT(!values.empty());
  const DType dtype = at_least_f32(values[0].dtype());
  std::vector<Value> sums;
  for (const Value& value : values) {
    const Value upcast = ir::cast(value, at_least_f32(value.dtype()));
    sums.push_back(ir::cast(ir::sum(ir::mul(upcast, upcast)), dtype));
  }
  // Pairwise, because the rounding error of a sequential sum would grow with the number of values.
  while (sums.size() > 1) {
    std::vector<Value> pairs;
    for (std::size_t i = 0; i < sums.size(); i += 2)
      pairs.push_back(i + 1 < sums.size() ? ir::add(sums[i], sums[i + 1]) : sums[i]);
    sums = std::move(pairs);
  }
  return ir::sqrt(sums[0]);
}

void advance_random_states(GraphBuilder& builder) {
  std::vector<Value> states;
  for (const ir::ValueId id : ir::all_values(builder.graph())) {
    const ir::Node& node = builder.graph()[id];
    if (!node.attrs.find("stream")) continue;
    for (const ir::ValueId operand : node.operands) {
      const ir::Node& state = builder.graph()[operand];
      const auto& updates = builder.graph().updates;
      const bool updated = std::any_of(updates.begin(), updates.end(),
                                       [&](const ir::Update& update) { return update.state == operand; });
      const bool known = std::any_of(states.begin(), states.end(), [&](const Value& s) { return s.id() == operand; });
      if (state.op == &ir::ops::state && state.type.dtype == i64 && state.type.shape == Shape{2} && !updated &&
          !known)
        states.emplace_back(builder, operand);
    }
  }
  for (const Value& state : states) builder.update(state, ir::add(state, ir::literal(builder, {2}, {0, 1}, i64)));
}

void add_loss_output(const Value& loss) {
  const auto& outputs = loss.builder().graph().outputs;
  const auto declared = [&](const ir::Output& output) { return output.name == "loss" && output.value == loss.id(); };
  if (std::none_of(outputs.begin(), outputs.end(), declared)) loss.builder().output("loss", loss);
}

void add_training_step(const Value& loss, const Optimizer& optimizer, const TrainingOptions& options) {
  if (options.precision != f32)
    throw UserError(fmt::format("training_step: {} in a graph that is under construction", name(options.precision)),
                    "train_options", "finish the graph, then make a training_step of it");
  build(loss, optimizer, options);
  add_loss_output(loss);
}

ir::Graph training_step(const ir::Graph& forward, std::string_view loss, const Optimizer& optimizer,
                        const TrainingOptions& options, const Location& line) {
  const ir::Graph from = options.precision == f32 ? forward : in_precision(forward, options.precision);
  const auto shared = std::make_shared<detail::GraphState>(from.name);
  GraphBuilder& builder = *shared;
  ir::Rebuilder to(builder, from);
  to.copy_rest();
  to.close();
  for (const ir::Output& output : from.outputs)
    if (output.name == loss) {
      const GraphBuilder::At at(builder, line);
      build(to[output.value], optimizer, options);
      return detail::finish_step(*shared);
    }
  throw UserError(fmt::format("training_step: the graph @{} has no output named {}", forward.name, loss),
                  "train_loss", "name the output that is the loss");
}

}  // namespace lathe
