#include "tests/support/goldens/golden.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/support/tensors/complex_elements.h"
#include "passes/autodiff/autodiff.h"
#include "passes/transforms/dtypes/mixed_precision.h"

namespace lathe::golden {

namespace {

class InterpreterProgram : public Program {
 public:
  explicit InterpreterProgram(const ir::Graph& graph) : graph_(graph) {}
  Tensors run(const Tensors& arguments) override { return ir::interpret(graph_, arguments); }

 private:
  ir::Graph graph_;
};

class InterpreterRunner : public GoldenRunner {
 public:
  std::unique_ptr<Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<InterpreterProgram>(graph);
  }
};

bool numeric(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// Converts floats to the dtype of the run; integers and masks to that of the graph.
HostTensor as_argument(const HostTensor& given, DType wanted) {
  return given.dtype() == wanted ? given : given.cast(wanted);
}

/// Returns the graph's arguments from the files' tensors: "in.x", "param.x", and "cot.*" by their full name. States
/// start at zero.
Tensors arguments_for(const ir::Graph& graph, const Files& files) {
  Tensors arguments;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    for (const auto& name : {"in." + node.name, "param." + node.name, node.name})
      if (const auto at = files.tensors.find(name); at != files.tensors.end()) {
        arguments.emplace(node.name, as_argument(at->second, node.type.dtype));
        break;
      }
    if (!arguments.contains(node.name))
      arguments.emplace(node.name, HostTensor(node.type.dtype, node.type.shape.evaluate({})));
  }
  return arguments;
}

std::vector<std::string> names_of(const Files& files, std::string_view prefix) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : files.tensors)
    if (name.starts_with(prefix)) names.push_back(name.substr(prefix.size()));
  return names;
}

/// Returns the forward graph with an output "mid.<name>" for each intermediate in the files.
ir::Graph with_intermediates(ir::Graph graph, const Files& files) {
  for (const std::string& name : names_of(files, "mid.")) {
    for (const ir::ValueId id : all_values(graph))
      if (graph[id].name == name) {
        graph.outputs.push_back({"mid." + name, id});
        break;
      }
  }
  return graph;
}

/// Requests gradients for every "grad.*" of every float output that is a scalar or has a golden cotangent.
ir::GradientRequest request_for(const ir::Graph& graph, const Files& files) {
  ir::GradientRequest request;
  for (const ir::Output& output : graph.outputs) {
    const bool seeded = files.tensors.contains("cot." + output.name);
    const ir::TensorType& type = graph[output.value].type;
    const bool scalar = type.rank() == 0 && is_float(type.dtype) && !output.name.starts_with("mid.");
    if (seeded || scalar) request.outputs.push_back({output.name, seeded ? "cot." + output.name : ""});
  }
  request.wrt = names_of(files, "grad.");
  return request;
}

double largest(const HostTensor& t) {
  double most = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i)
    if (const double x = std::abs(get_complex(t, i)); std::isfinite(x)) most = std::max(most, x);
  return most;
}

double length(const HostTensor& t) {
  double squares = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i)
    if (const double x = std::norm(get_complex(t, i)); std::isfinite(x)) squares += x;
  return std::sqrt(squares);
}

double size_of(const HostTensor& t, Metric metric) { return metric == Metric::max_norm ? largest(t) : length(t); }

bool is_nan(std::complex<double> z) { return std::isnan(z.real()) || std::isnan(z.imag()); }

/// Replaces all of the files' tensors that the graph computes with the interpreter's results.
Tensors interpreted(const ir::Graph& graph, const Tensors& arguments, Tensors tensors) {
  for (const auto& [name, value] : ir::interpret(graph, arguments)) {
    const std::string full_name = name.starts_with("mid.") || name.starts_with("grad.") ? name : "out." + name;
    if (tensors.contains(full_name)) tensors.insert_or_assign(full_name, value);
  }
  return tensors;
}

Comparison missing(const std::string& name, double limit) {
  return {name, std::numeric_limits<double>::infinity(), limit, "the graph does not give it"};
}

}  // namespace

std::unique_ptr<GoldenRunner> interpreter_runner() { return std::make_unique<InterpreterRunner>(); }

Comparison compare(const std::string& name, const HostTensor& actual, const HostTensor& golden, Metric metric,
                   double limit, double least_scale) {
  constexpr double never = std::numeric_limits<double>::infinity();
  if (actual.shape() != golden.shape())
    return {name, never, limit,
            fmt::format("shape {}, golden {}", shape_to_string(actual.shape()), shape_to_string(golden.shape()))};
  const bool exact = !numeric(golden.dtype());
  double most = 0, squares = 0;
  for (std::int64_t i = 0; i < golden.numel(); ++i) {
    if (exact && actual.get_int(i) != golden.get_int(i))
      return {name, never, 0, fmt::format("element {} is {}, golden {}", i, actual.get_int(i), golden.get_int(i))};
    if (exact) continue;
    const auto a = get_complex(actual, i), g = get_complex(golden, i);
    if (is_nan(a) && is_nan(g)) continue;
    if (a == g) continue;
    const double difference = std::abs(a - g);
    if (!std::isfinite(difference))
      return {name, never, limit, fmt::format("element {} is {}, golden {}", i, a.real(), g.real())};
    most = std::max(most, difference);
    squares += difference * difference;
  }
  const double scale = std::max(size_of(golden, metric), least_scale);
  const double difference = metric == Metric::max_norm ? most : std::sqrt(squares);
  return {name, difference == 0 ? 0 : difference / scale, limit, ""};
}

std::vector<Comparison> compare_values(const Case& which, const Files& files, GoldenRunner& runner, DType dtype,
                                       const Tolerance& tolerance) {
  Graph g(which.name);
  which.build(g, files, dtype);
  ir::Graph forward = with_intermediates(g.finish(), files);
  if (tolerance.precision != f32) forward = ir::mixed_precision(forward, tolerance.precision);
  const auto request = request_for(forward, files);
  const ir::Graph graph = request.wrt.empty() ? forward : ir::differentiate(forward, request);
  const Tensors arguments = arguments_for(graph, files);
  const Tensors results = runner.prepare(graph)->run(arguments);
  const Tensors goldens =
      which.needs_f64 && dtype != f64 ? interpreted(graph, arguments, files.tensors) : files.tensors;

  double scale = 0;
  for (const std::string& name : names_of(files, "grad."))
    scale = std::max(scale, size_of(goldens.at("grad." + name), tolerance.metric));
  std::vector<Comparison> found;
  for (const std::string_view prefix : {"mid.", "out.", "grad."}) {
    const bool gradient = prefix == "grad.";
    const double limit = gradient ? tolerance.gradients : tolerance.outputs;
    for (const std::string& name : names_of(files, prefix)) {
      const std::string full_name = std::string(prefix) + name;
      const auto at = results.find(prefix == "out." ? name : full_name);
      found.push_back(at == results.end() ? missing(full_name, limit)
                                          : compare(full_name, at->second, goldens.at(full_name), tolerance.metric,
                                                    limit, gradient ? tolerance.floor * scale : 0));
    }
  }
  return found;
}

std::vector<Comparison> compare_training(const Case& which, const Files& files, GoldenRunner& runner, DType dtype,
                                         const Tolerance& tolerance) {
  if (!which.training || !files.tensors.contains("curve.loss")) return {};
  const Training training = which.training(files);
  Graph g(which.name);
  which.build(g, files, dtype);
  TrainingOptions options;
  options.clip_norm = training.clip_norm;
  options.precision = tolerance.precision;
  const ir::Graph graph = training_step(g.finish(), "loss", training.optimizer, options);
  const auto program = runner.prepare(graph);
  Tensors arguments = arguments_for(graph, files);

  const std::int64_t steps =
      tolerance.curve_steps > 0 ? std::min(tolerance.curve_steps, training.steps) : training.steps;
  std::map<std::string, std::vector<double>> curves;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (auto& [name, value] : program->run(arguments)) {
      if (files.tensors.contains("curve." + name)) curves[name].push_back(value.get(0));
      if (arguments.contains(name)) arguments.insert_or_assign(name, std::move(value));
    }
  }
  std::vector<Comparison> found;
  for (const std::string& name : names_of(files, "curve.")) {
    const HostTensor& whole = files.tensors.at("curve." + name);
    HostTensor golden(f64, {steps});
    for (std::int64_t i = 0; i < steps; ++i) golden.set(i, whole.get(i));
    found.push_back(curves.contains(name) ? compare("curve." + name, HostTensor::from({steps}, curves[name], f64),
                                                    golden, tolerance.metric, tolerance.curves)
                                          : missing("curve." + name, tolerance.curves));
  }
  if (tolerance.curve_steps > 0) return found;
  for (const std::string& name : names_of(files, "after."))
    found.push_back(compare("after." + name, arguments.at(name), files.tensors.at("after." + name), tolerance.metric,
                            tolerance.curves));
  return found;
}

bool all_good(std::span<const Comparison> comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.good(); });
}

std::string report(std::span<const Comparison> comparisons) {
  std::string text;
  const Comparison* worst = nullptr;
  for (const Comparison& c : comparisons) {
    if (!c.good())
      text += fmt::format("  {}: error {:.3g}, limit {:.3g}{}{}\n", c.tensor, c.error, c.limit,
                          c.note.empty() ? "" : "; ", c.note);
    else if (!worst || c.error > worst->error)
      worst = &c;
  }
  if (worst) text += fmt::format("  worst of the good: {} with {:.3g}\n", worst->tensor, worst->error);
  return text;
}

}  // namespace lathe::golden
