#include <fmt/core.h>

#include <cmath>
#include <random>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

/// Checks that the graph has the same meaning after some passes.
Complaint changed_meaning(const Case& from, const std::vector<ir::Graph>& after,
                          const std::vector<std::string>& names) {
  for (const DimBindings& dims : from.sizes) {
    Reference reference(from, dims, true);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Outcome found = outcome([&] { return interpret(after[i], reference.arguments()); });
      if (const auto wrong = reference.complaint(found))
        return fmt::format("{}, {}: {}", names[i], test::to_string(dims), *wrong);
    }
  }
  return std::nullopt;
}

Complaint passes(const Case& from) {
  std::vector<ir::Graph> after;
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) {
    after.push_back(run_pipeline(from.graph, {pass}).graph);
    names.push_back(pass.name);
  }
  after.push_back(run_pipeline(from.graph, default_pipeline()).graph);
  names.push_back("the default pipeline");
  return changed_meaning(from, after, names);
}

Complaint orders(const Case& from) {
  std::mt19937 random(from.seed);
  const Pipeline all = all_passes();
  std::vector<ir::Graph> after;
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) {
    Pipeline some;
    std::string list;
    for (auto length = 2 + random() % 5; length > 0; --length) {
      some.push_back(all[random() % all.size()]);
      list += (list.empty() ? "" : ",") + some.back().name;
    }
    after.push_back(run_pipeline(from.graph, some).graph);
    names.push_back(list);
  }
  return changed_meaning(from, after, names);
}

Complaint text(const Case& from) {
  const std::string printed = print(from.graph);
  const ir::Graph again = parse_graph(printed, "fuzz");
  verify(again);
  const std::string twice = print(again);
  if (twice == printed) return std::nullopt;
  return "prints differently after parsing:\n" + twice;
}

/// Checks that passes are idempotent.
Complaint idempotence(const Case& from) {
  for (const Pass& pass : all_passes()) {
    const ir::Graph once = pass.run(from.graph);
    const std::string before = print(once), after = print(pass.run(once));
    if (before != after) return fmt::format("{} changes its own result\n{}\n{}", pass.name, before, after);
  }
  return std::nullopt;
}

bool has_op(const ir::Graph& graph, const Op& op) {
  for (const Node& node : graph.nodes)
    if (node.op == &op) return true;
  return false;
}

/// Returns the derivative of "loss" along `direction`, by central differences.
double finite_difference(const ir::Graph& graph, const Tensors& arguments, const Tensors& direction, double step) {
  const auto loss_at = [&](double distance) {
    Tensors moved = arguments;
    for (const auto& [name, along] : direction)
      for (std::int64_t i = 0; i < along.numel(); ++i)
        moved.at(name).set(i, moved.at(name).get(i) + distance * along.get(i));
    return interpret(graph, moved, {.round = false}).at("loss").get(0);
  };
  return (loss_at(step) - loss_at(-step)) / (2 * step);
}

/// Compares gradients with finite differences of the loss. If differences at two distances disagree, the point is not
/// smooth. Skipped for scaled arguments, next to which these distances are either negligible or huge.
Complaint finite_differences(const Case& from) {
  if (from.scaled || has_op(from.graph, ops::stop_gradient) || has_op(from.graph, ops::straight_through) ||
      from.graph.find_argument("cot.grad.x1").valid())
    return std::nullopt;
  for (const DimBindings& dims : from.sizes) {
    const Tensors arguments = arguments_of(from, dims);
    const Outcome expected = outcome([&] { return interpret(from.graph, arguments, {.round = false}); });
    const Tensors& results = expected.results;
    if (!expected.label.empty() || !results.contains("loss")) continue;
    std::mt19937 random(from.seed);
    std::uniform_real_distribution<double> real(-1, 1);
    Tensors direction;
    double promised = 0;
    for (const ValueId id : from.graph.arguments()) {
      const Node& node = from.graph[id];
      const auto gradient = results.find("grad." + node.name);
      if (node.type.dtype != f64 || gradient == results.end()) continue;
      HostTensor& along = direction.set(node.name, HostTensor(f64, gradient->second.shape()));
      for (std::int64_t i = 0; i < along.numel(); ++i) {
        along.set(i, real(random));
        promised += along.get(i) * gradient->second.get(i);
      }
    }
    if (direction.empty()) continue;
    const double near = finite_difference(from.graph, arguments, direction, 1e-6),
                 far = finite_difference(from.graph, arguments, direction, 3e-6);
    const double scale = std::max({1.0, std::fabs(near), std::fabs(far)});
    if (!(std::fabs(near - far) <= 1e-7 * scale)) continue;
    if (!(std::fabs(near - promised) <= 1e-4 * scale))
      return fmt::format("{}: the loss changes by {} per step where its gradients say {}", test::to_string(dims),
                         near, promised);
  }
  return std::nullopt;
}

/// Simplifies before differentiating, and the other way round.
Complaint gradients_after(const Case& from) {
  const GradientRequest request{.outputs = {{"loss", ""}}, .unused = Unused::zeros};
  for (const Output& output : from.graph.outputs)
    if (output.name.starts_with("grad.")) return std::nullopt;
  bool has_loss = false;
  for (const Output& output : from.graph.outputs) has_loss = has_loss || output.name == "loss";
  if (!has_loss) return std::nullopt;
  const ir::Graph simpler = run_pipeline(from.graph, parse_pipeline("canonicalize,cse,constant-fold")).graph;
  return changed_meaning({from.seed, differentiate(from.graph, request), from.sizes},
                         {differentiate(simpler, request)}, {"gradients of the simplified graph"});
}

}  // namespace

std::span<const Oracle> graph_oracles() {
  static constexpr Oracle all[] = {
      {"text", "printing, parsing and printing again gives the same text", text},
      {"passes", "each pass alone, and the default pipeline, preserve the meaning", passes},
      {"orders", "random passes in random order preserve the meaning", orders},
      {"idempotence", "a pass does not change its own result", idempotence},
      {"finite-differences", "gradients agree with central differences of the loss", finite_differences},
      {"chunks", "a loss on top, in chunks of rows, and its gradients have the same meaning", in_chunks},
      {"segments", "loops that run again for their gradients, segment by segment, have the same results",
       in_segments},
      {"shard", "sharded over processes, the graph gives the results of one process, or is rejected with a label",
       divided},
      {"derived", "gradients of the simplified graph have the same meaning", gradients_after},
  };
  return all;
}

}  // namespace lathe::fuzz
