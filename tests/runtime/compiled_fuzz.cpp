#include <catch2/catch.hpp>
#include <random>

#include "ir/ops/list.h"
#include "ir/tensor/printer.h"
#include "passes/autodiff.h"
#include "passes/convert_dtype.h"
#include "runtime/executable.h"
#include "tests/ops/samples.h"
#include "tests/support/program_interpreter.h"
#include "tests/support/random_graph.h"

/// Random graphs with their gradients and random updates of states, as machine code against the interpreter. Each is
/// compiled once and run with several sizes of its unknown dims.
namespace lathe::ir::test {

namespace {

const std::vector<DimBindings> several_sizes = {
    random_graph_dims, {{"n", 1}, {"m", 1}}, {{"n", 3}, {"m", 17}}, {{"n", 0}, {"m", 2}}, {{"n", 9}, {"m", 8}}};

/// Makes some inputs states, each updated by some value of its type.
Graph with_updates(Graph graph, unsigned seed) {
  std::mt19937 random(seed);
  for (const ValueId state : graph.arguments()) {
    if (graph[state].type.dtype != f64 || random() % 2) continue;
    std::vector<ValueId> fitting;
    for (const ValueId id : all_values(graph))
      if (graph[id].type.dtype == f64 && graph[id].type.shape == graph[state].type.shape && id != state)
        fitting.push_back(id);
    graph[state].op = &ops::state;
    if (!fitting.empty()) graph.updates.push_back({state, fitting[random() % fitting.size()]});
  }
  return graph;
}

Graph fuzz_graph(unsigned seed, int ops) {
  const Graph forward = random_graph(seed, ops);
  const Graph both = differentiate(forward, {.outputs = {{"loss", ""}}, .unused = Unused::zeros});
  return with_updates(both, seed);
}

Tensors fuzz_arguments(const Graph& graph, const DimBindings& dims, unsigned seed) {
  std::mt19937 generator(seed);
  Tensors result;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    const double high = is_integer(node.type.dtype) ? 0 : 2;  // the one index that every table has
    result.emplace(node.name,
                   random_tensor({node.type.shape.evaluate(dims), node.type.dtype, -high, high}, generator));
  }
  return result;
}

/// What a way of running gives: results, or the label of the error.
struct Outcome {
  Tensors results;
  std::string label;
};
template <class F>
Outcome outcome(F run) {
  try {
    return {run(), ""};
  } catch (const UserError& error) {
    return {{}, error.label()};
  } catch (const InternalError& error) {
    return {{}, error.what()};
  }
}

Tensors run_executable(Executable& executable, Tensors arguments) {
  for (const Program::Slot& slot : executable.program().states) {
    executable.set_state(slot.name, arguments.at(slot.name));
    arguments.erase(slot.name);
  }
  Tensors results = executable.run(arguments);
  for (const auto& [name, value] : executable.states()) results.emplace(name, value);
  return results;
}

double largest_magnitude(const Tensors& tensors) {
  double largest = 1;
  for (const auto& [name, value] : tensors)
    for (std::int64_t i = 0; i < value.numel(); ++i)
      if (std::isfinite(value.get(i))) largest = std::max(largest, std::fabs(value.get(i)));
  return largest;
}

/// Equal labels, or all results equal to within `tolerance` of the largest number of the whole run.
void check_same(const Outcome& expected, const Outcome& found, double tolerance) {
  CHECK(found.label == expected.label);
  if (!expected.label.empty() || !found.label.empty()) return;
  const double scale = largest_magnitude(expected.results);
  for (const auto& [name, value] : expected.results) {
    const HostTensor& other = found.results.at(name);
    REQUIRE(other.shape() == value.shape());
    double worst = 0;
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      const double a = value.get(i), b = other.get(i);
      if (!(a == b || (std::isnan(a) && std::isnan(b)))) worst = std::max(worst, std::fabs(a - b) / scale);
      if (std::isnan(a) != std::isnan(b)) worst = std::numeric_limits<double>::infinity();
    }
    INFO(name << "\nexpected " << value.to_string() << "\nfound    " << other.to_string());
    CHECK(worst <= tolerance);
  }
}

void fuzz(unsigned first, unsigned count, int ops) {
  for (unsigned seed = first; seed < first + count; ++seed) {
    const Graph graph = fuzz_graph(seed, ops);
    INFO("seed " << seed << "\n" << print(graph));
    Executable executable = compile(graph, {.threads = 1});
    const lathe::test::ProgramInterpreter program(graph, {128 << seed % 3});
    for (const DimBindings& dims : several_sizes) {
      INFO("n=" << dims.at("n") << " m=" << dims.at("m"));
      const Tensors arguments = fuzz_arguments(graph, dims, seed);
      const Outcome expected = outcome([&] { return interpret(graph, arguments); });
      check_same(expected, outcome([&] { return run_executable(executable, arguments); }), 1e-9);
      if (dims.at("m") > 8) continue;
      check_same(expected, outcome([&] { return program.run(arguments); }), 1e-9);
    }
  }
}

}  // namespace

TEST_CASE("random graphs as machine code", "[fuzz]") { fuzz(1000, 60, 12); }
TEST_CASE("many random graphs as machine code", "[.long]") { fuzz(5000, 1000, 14); }

}  // namespace lathe::ir::test
