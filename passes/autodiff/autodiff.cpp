#include "passes/autodiff/autodiff.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/visible.h"
#include "ir/tensor/analysis/ancestors.h"
#include "passes/autodiff/backward.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

bool is_real_or_complex(DType dtype) { return is_float(dtype) || is_complex(dtype); }

std::string describe(const Value& value) {
  const Node& node = value.node();
  return fmt::format("{} ({})", node.name.empty() ? fmt::format("%{}", value.id().index) : node.name,
                     node.type.to_string());
}

/// Throws at the line that requests the gradient if it is known, otherwise at the value's line.
[[noreturn]] void fail(const Value& at, std::string_view message, std::string_view label, std::string_view hint) {
  const Location& asked = at.builder().location();
  throw UserError(asked.known() ? asked : at.node().loc, "grad", message, label, hint);
}

void check_output(const Seed& seed) {
  const Value& output = seed.output;
  if (!is_real_or_complex(output.dtype()))
    fail(output, fmt::format("the output {} has no gradient", describe(output)), "grad_output_dtype",
         "only float and complex values can be differentiated; cast it first, as in x.to(f32)");
  if (!seed.cotangent) {
    if (!output.shape().numel().is(1) || is_complex(output.dtype()))
      fail(output, fmt::format("the output {} is not a real scalar, so it needs a cotangent", describe(output)),
           "grad_scalar", "give a cotangent of the same type, or take the sum or mean of the output first");
    return;
  }
  const Value& cotangent = *seed.cotangent;
  if (cotangent.dtype() != output.dtype() || cotangent.shape() != output.shape())
    fail(output, fmt::format("the cotangent of {} has the type {}", describe(output), cotangent.type().to_string()),
         "grad_cotangent", "a cotangent has the dtype and shape of its output");
}

/// Throws an error that explains why no gradient arrives at `wrt`.
void fail_unused(const GraphBuilder& builder, std::span<const ValueId> outputs, const Value& wrt) {
  const Graph& graph = builder.graph();
  const auto region = ancestors(graph, outputs, [](ValueId) { return true; });
  std::string why = "no output depends on it";
  if (std::binary_search(region.begin(), region.end(), wrt.id())) {
    why = "the outputs depend on it only through values without a gradient";
    // Find the first op after it that stops the gradient.
    NodeMap<bool> below(graph);
    below[wrt.id()] = true;
    for (const ValueId id : region) {
      const Node& node = graph[id];
      const auto on_path = [&](ValueId operand) { return below[operand]; };
      if (id == wrt.id() || std::none_of(node.operands.begin(), node.operands.end(), on_path)) continue;
      below[id] = true;
      if (passes_gradient(node)) continue;
      const auto* blocked = std::get_if<NotDifferentiable>(&node.op->gradient);
      why += fmt::format(": {} at {} stops it{}{}", node.op->name.value, node.loc.to_string(), blocked ? ": " : "",
                         blocked ? blocked->why : "");
      break;
    }
  }
  fail(wrt, fmt::format("there is no gradient with respect to {}: {}", describe(wrt), why), "grad_wrt_unused",
       "leave it out of the list");
}

Value one_like(GraphBuilder& builder, const Value& output) {
  const GraphBuilder::At at(builder, output.node().loc.as_gradient());
  const TensorType type = output.type();
  return full(builder, type.shape, 1, type.dtype);
}

Value zeros_like(GraphBuilder& builder, const Value& value) {
  const GraphBuilder::At at(builder, value.node().loc.as_gradient());
  const TensorType type = value.type();
  return full(builder, type.shape, 0, type.dtype);
}

}  // namespace

Gradients gradients(GraphBuilder& builder, std::span<const Seed> outputs, std::span<const Value> wrt, Unused unused) {
  std::vector<Cotangent> seeds;
  std::vector<ValueId> starts, targets;
  for (const Seed& seed : outputs) {
    check_output(seed);
    starts.push_back(seed.output.id());
    seeds.push_back({seed.output.id(), seed.cotangent ? *seed.cotangent : one_like(builder, seed.output)});
  }
  for (const Value& value : wrt) {
    if (!is_real_or_complex(value.dtype()))
      fail(value, fmt::format("there is no gradient with respect to {}", describe(value)), "grad_wrt_dtype",
           "only float and complex values can be differentiated");
    targets.push_back(value.id());
  }
  const auto found = backward(builder, seeds, targets);
  Gradients result;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!found[i] && unused == Unused::error) fail_unused(builder, starts, wrt[i]);
    result.values.push_back(found[i] ? *found[i] : zeros_like(builder, wrt[i]));
    result.reached.push_back(found[i].has_value());
  }
  return result;
}

Gradients gradients(GraphBuilder& builder, const Value& output, std::optional<Value> cotangent,
                    std::span<const Value> wrt, Unused unused) {
  const Seed seed{output, std::move(cotangent)};
  return gradients(builder, {&seed, 1}, wrt, unused);
}

namespace {

[[noreturn]] void unknown_name(std::string_view kind, std::string_view name, const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& each : known) list += (list.empty() ? "" : ", ") + visible(each);
  throw UserError(fmt::format("grad: there is no {} named {}", kind, name), "grad_unknown_name",
                  fmt::format("there are: {}", list));
}

ValueId find_output(const Graph& graph, std::string_view name) {
  std::vector<std::string> known;
  for (const Output& output : graph.outputs) {
    if (output.name == name) return output.value;
    known.push_back(output.name);
  }
  unknown_name("output", name, known);
}

ValueId find_value(const Graph& graph, std::string_view name) {
  if (const ValueId argument = graph.find_argument(name); argument.valid()) return argument;
  for (const ValueId id : all_values(graph))
    if (graph[id].name == name) return id;
  std::vector<std::string> known;
  for (const ValueId id : graph.arguments()) known.push_back(graph[id].name);
  unknown_name("argument or named value", name, known);
}

std::vector<GradientRequest::OutputSeed> wanted_outputs(const Graph& graph, const GradientRequest& request) {
  if (!request.outputs.empty()) return request.outputs;
  std::vector<GradientRequest::OutputSeed> all;
  for (const Output& output : graph.outputs)
    if (is_real_or_complex(graph[output.value].type.dtype)) all.push_back({output.name, {}});
  return all;
}

std::vector<std::string> wanted_arguments(const Graph& graph, const GradientRequest& request) {
  if (!request.wrt.empty()) return request.wrt;
  for (const Op* kind : {&ops::parameter, &ops::input}) {
    std::vector<std::string> names;
    for (const ValueId id : graph.arguments())
      if (graph[id].op == kind && is_real_or_complex(graph[id].type.dtype)) names.push_back(graph[id].name);
    if (!names.empty()) return names;
  }
  return {};
}

/// Throws UserError [output_name] if an output would be differentiated twice, or if two outputs would have the name
/// of a gradient.
void check_repeated(const Graph& graph, const GradientRequest& request, const std::vector<std::string>& wrt) {
  for (auto seed = request.outputs.begin(); seed != request.outputs.end(); ++seed)
    if (std::find(request.outputs.begin(), seed, *seed) != seed)
      throw UserError(fmt::format("grad: the output {} is listed twice", visible(seed->output)), "output_name",
                      "list each output once");
  for (auto name = wrt.begin(); name != wrt.end(); ++name) {
    if (std::find(wrt.begin(), name, *name) != name)
      throw UserError(
          fmt::format("grad: {} is listed twice as a value to differentiate with respect to", visible(*name)),
          "output_name", "list each value once");
    const auto is_taken = [&](const Output& output) { return output.name == "grad." + *name; };
    if (request.keep_outputs && std::ranges::any_of(graph.outputs, is_taken))
      throw UserError(fmt::format("grad: @{} already has an output grad.{}", visible(graph.name), visible(*name)),
                      "output_name", "leave out its own outputs (--only), or differentiate with respect to others");
  }
}

}  // namespace

Graph differentiate(const Graph& graph, const GradientRequest& request) {
  const std::vector<std::string> names = wanted_arguments(graph, request);
  check_repeated(graph, request, names);
  GraphBuilder builder(graph.name);
  Rebuilder to(builder, graph);
  to.copy_rest();
  if (request.keep_outputs)
    to.close();
  else
    builder.add_checks(graph.checks);

  std::vector<Seed> seeds;
  for (const auto& [name, cotangent] : wanted_outputs(graph, request)) {
    const Value output = to[find_output(graph, name)];
    const bool implicit = cotangent.empty() && output.shape().numel().is(1) && !is_complex(output.dtype());
    Seed seed{output, {}};
    if (!implicit) {
      const TensorType type = output.type();
      seed.cotangent =
          builder.argument(ops::input, cotangent.empty() ? "cot." + name : cotangent, type.dtype, type.shape);
    }
    seeds.push_back(seed);
  }
  std::vector<Value> wrt;
  for (const std::string& name : names) wrt.push_back(to[find_value(graph, name)]);
  const Gradients found = gradients(builder, seeds, wrt, request.unused);
  for (std::size_t i = 0; i < names.size(); ++i) builder.output("grad." + names[i], found[i]);
  return builder.finish();
}

}  // namespace lathe::ir
