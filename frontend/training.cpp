#include "frontend/training.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/functional.h"
#include "ir/ops/list.h"
#include "passes/autodiff.h"
#include "passes/rebuild.h"

namespace lathe {

using ir::GraphBuilder;
using ir::Value;

namespace {

DType wide(DType dtype) { return dtype == f64 ? f64 : f32; }

/// A parameter and the gradient that its update will see.
struct Trained {
  Value parameter;
  Value gradient;
};

void check(const Value& loss, const TrainingOptions& options) {
  if (!is_float(loss.dtype()) || loss.rank() != 0)
    throw UserError(loss.node().loc, "training_step",
                    fmt::format("the loss is {}, not a float scalar", loss.type().to_string()), "train_loss",
                    "take its sum or mean over every dim");
  if (options.accumulate < 1)
    throw UserError(fmt::format("training_step: {} micro-batches an update", options.accumulate), "train_options",
                    "accumulate is 1 or more");
  if (!(options.clip_norm >= 0))
    throw UserError(fmt::format("training_step: clipping to the norm {}", options.clip_norm), "train_options",
                    "clip_norm is 0 (no clipping) or positive");
}

/// The trainable parameters that the loss depends on, with their gradients.
std::vector<Trained> differentiate(const Value& loss, const TrainingOptions& options) {
  GraphBuilder& builder = loss.builder();
  std::vector<Value> parameters;
  for (const ir::ValueId id : builder.graph().arguments()) {
    const ir::Node& node = builder.graph()[id];
    if (node.op == &ir::ops::parameter && is_float(node.type.dtype) &&
        (!options.trainable || options.trainable(node)))
      parameters.emplace_back(builder, id);
  }
  const auto found = ir::gradients(builder, loss, std::nullopt, parameters, ir::Unused::zeros);
  std::vector<Trained> trained;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (found.reached[i])
      trained.push_back({parameters[i], found[i]});
    else if (options.note)
      options.note(
          fmt::format("the loss does not use the parameter {}: it is not trained", parameters[i].node().name));
  }
  if (trained.empty())
    throw UserError(loss.node().loc, "training_step", "the loss depends on no trainable parameter",
                    "train_parameters", "declare the weights with parameter()");
  return trained;
}

/// Adds the gradients to accumulators, replaces each by the mean so far, and tells whether this run completes it.
Value accumulate(std::vector<Trained>& trained, std::int64_t times) {
  GraphBuilder& builder = trained.front().parameter.builder();
  const Value counter = builder.argument(ir::ops::state, "optimizer.micro_step", i64, {});
  const Value runs = ir::add(counter, 1.0);
  const Value complete = ir::eq(runs, static_cast<double>(times));
  builder.update(counter, ir::where(complete, 0.0, runs));
  for (Trained& each : trained) {
    const std::string name = "optimizer.accumulated." + each.parameter.node().name;
    const Shape shape = each.parameter.shape();
    const DType dtype = wide(each.parameter.dtype());
    const Value sum = builder.argument(ir::ops::state, name, dtype, shape);
    const Value mean = ir::add(sum, ir::div(ir::cast(each.gradient, dtype), static_cast<double>(times)));
    builder.update(sum, ir::where(complete, 0.0, mean));
    each.gradient = mean;
  }
  return complete;
}

/// The global norm of the gradients; nothing where neither clipping nor the user wants it.
std::optional<Value> norm_of(const std::vector<Trained>& trained, const TrainingOptions& options) {
  if (options.clip_norm == 0 && !options.report_norm) return std::nullopt;
  std::vector<Value> gradients;
  for (const Trained& each : trained) gradients.push_back(each.gradient);
  return global_norm(gradients);
}

/// Clips by the global norm.
void clip(std::vector<Trained>& trained, double limit, const Value& norm) {
  const Value factor = ir::minimum(ir::div(limit, ir::add(norm, 1e-6)), 1.0);
  for (Trained& each : trained) {
    const DType dtype = wide(each.gradient.dtype());
    each.gradient = ir::mul(ir::cast(each.gradient, dtype), ir::cast(factor, dtype));
  }
}

/// Counts updates, and gives what all parameters' updates share.
OptimizerStep begin_update(GraphBuilder& builder, const Optimizer& optimizer, const std::optional<Value>& complete) {
  const auto update = [&builder, complete](const Value& state, const Value& value) {
    builder.update(state, complete ? ir::where(*complete, value, state) : value);
  };
  const Value done = builder.argument(ir::ops::state, "optimizer.step", i64, {});
  const Value next = ir::add(done, 1.0);
  update(done, next);
  const Value count = ir::cast(next, f64);
  return {count, learning_rate(optimizer).at(count), update};
}

void add_loss_output(const Value& loss) {
  const auto& outputs = loss.builder().graph().outputs;
  const auto declared = [&](const ir::Output& output) { return output.name == "loss" && output.value == loss.id(); };
  if (std::none_of(outputs.begin(), outputs.end(), declared)) loss.builder().output("loss", loss);
}

/// Everything but the output of the loss itself.
void build(const Value& loss, const Optimizer& optimizer, const TrainingOptions& options) {
  check(loss, options);
  GraphBuilder& builder = loss.builder();
  auto trained = differentiate(loss, options);
  const Location line = builder.location().known() ? builder.location() : loss.node().loc;
  const GraphBuilder::At at(builder, line.known() ? Location(line.file(), line.line(), "optimizer") : line);
  std::optional<Value> complete;
  if (options.accumulate > 1) complete = accumulate(trained, options.accumulate);
  const std::optional<Value> norm = norm_of(trained, options);
  if (options.clip_norm > 0) clip(trained, options.clip_norm, *norm);
  const OptimizerStep step = begin_update(builder, optimizer, complete);
  for (const Trained& each : trained) {
    const bool decay = !options.decayed || options.decayed(each.parameter.node());
    add_update(optimizer, step, each.parameter, each.gradient, decay);
  }
  advance_random_states(builder);
  if (options.report_norm) builder.output("grad_norm", ir::cast(*norm, loss.dtype()));
  builder.output("learning_rate", ir::cast(step.rate, loss.dtype()));
}

}  // namespace

Value global_norm(std::span<const Value> values) {
  LATHE_ASSERT(!values.empty());
  const DType dtype = wide(values[0].dtype());
  std::optional<Value> total;
  for (const Value& value : values) {
    const Value wide_value = ir::cast(value, wide(value.dtype()));
    const Value squares = ir::cast(ir::sum(ir::mul(wide_value, wide_value)), dtype);
    total = total ? ir::add(*total, squares) : squares;
  }
  return ir::sqrt(*total);
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

void add_training_step(const Value& loss, const Optimizer& optimizer, const TrainingOptions& options) {
  build(loss, optimizer, options);
  add_loss_output(loss);
}

ir::Graph training_step(const ir::Graph& forward, std::string_view loss, const Optimizer& optimizer,
                        const TrainingOptions& options) {
  GraphBuilder builder(forward.name);
  ir::Rebuilder to(builder, forward);
  to.copy_rest();
  to.close();
  for (const ir::Output& output : forward.outputs)
    if (output.name == loss) {
      build(to[output.value], optimizer, options);
      return builder.finish();
    }
  throw UserError(fmt::format("training_step: the graph @{} has no output named {}", forward.name, loss),
                  "train_loss", "name the output that is the loss");
}

}  // namespace lathe
