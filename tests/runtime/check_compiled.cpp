#include "tests/runtime/check_compiled.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "ir/tensor/parser.h"
#include "ir/tensor/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/support/program_interpreter.h"

namespace lathe::test {

using namespace ir;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

HostTensor random_tensor(DType dtype, std::vector<std::int64_t> sizes, std::int64_t top, std::mt19937& generator) {
  HostTensor result(dtype, std::move(sizes));
  std::uniform_real_distribution<double> real(-2, 2);
  std::uniform_int_distribution<std::int64_t> whole(0, dtype == boolean ? 1 : top);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    if (is_complex(dtype))
      result.set_complex(i, {real(generator), real(generator)});
    else if (is_float(dtype))
      result.set(i, real(generator));
    else
      result.set_int(i, whole(generator));
  }
  return result;
}

/// |a - b|, infinite where only one is NaN or they are different infinities.
double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? infinity : d;
}

}  // namespace

Graph parse(std::string_view text) {
  Graph graph = parse_graph(text, "test");
  verify(graph);
  return graph;
}

Tensors random_arguments(const Graph& graph, const DimBindings& dims, unsigned seed, std::int64_t top) {
  std::mt19937 generator(seed);
  Tensors result;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    result.emplace(node.name, random_tensor(node.type.dtype, node.type.shape.evaluate(dims), top, generator));
  }
  return result;
}

Tensors run_with_states(Executable& executable, Tensors arguments) {
  for (const Program::Slot& slot : executable.program().states) {
    executable.set_state(slot.name, arguments.at(slot.name));
    arguments.erase(slot.name);
  }
  Tensors results = executable.run(arguments);
  for (const auto& [name, value] : executable.states()) results.emplace(name, value);
  return results;
}

double error_of(const HostTensor& found, const HostTensor& expected) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) return infinity;
  double largest = 1, worst = 0;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    if (is_integer(expected.dtype())) {
      if (found.get_int(i) != expected.get_int(i)) return infinity;
      continue;
    }
    const auto x = expected.get_complex(i), y = found.get_complex(i);
    if (std::isfinite(std::abs(x))) largest = std::max(largest, std::abs(x));
    worst = std::max({worst, difference(x.real(), y.real()), difference(x.imag(), y.imag())});
  }
  return worst / largest;
}

void check_close(const Tensors& found, const Tensors& expected, double tolerance) {
  for (const auto& [name, value] : expected) {
    INFO(name);
    REQUIRE(found.count(name) == 1);
    const double error = error_of(found.at(name), value);
    if (error > tolerance)
      UNSCOPED_INFO("expected " << value.to_string() << "\nfound    " << found.at(name).to_string());
    CHECK(error <= tolerance);
  }
}

void check_same(const Outcome& found, const Outcome& expected, double tolerance) {
  CHECK(found.label == expected.label);
  if (found.label.empty() && expected.label.empty()) check_close(found.results, expected.results, tolerance);
}

void check_compiled(const Graph& graph, const CheckOptions& options) {
  INFO("seed " << options.seed << "\n" << print(graph, {.locations = false}));
  Executable executable = compile(graph, {.threads = 2, .cache = options.store});
  std::vector<ProgramInterpreter> programs;
  if (options.interpret_kernels)
    for (const int bits : {128, 256, 512}) programs.emplace_back(graph, VectorTarget{bits});
  for (const DimBindings& dims : options.sizes) {
    std::string sizes;
    for (const auto& [name, size] : dims) sizes += fmt::format("{}={} ", name, size);
    INFO(sizes);
    const Tensors arguments = random_arguments(graph, dims, options.seed, options.top);
    const Outcome expected = outcome([&] { return interpret(graph, arguments); });
    check_same(outcome([&] { return run_with_states(executable, arguments); }), expected, options.tolerance);
    for (const ProgramInterpreter& program : programs) {
      INFO("by the kernel interpreter");
      check_same(outcome([&] { return program.run(arguments); }), expected, options.tolerance);
    }
  }
}

}  // namespace lathe::test
