#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "tests/gpu/gpu_device.h"
#include "tests/support/graphs/sample_graphs.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

/// Every sample of every op, with its gradients, on a real GPU compared with the interpreter.
using namespace lathe;
using ir::test::Layout;
using test::Outcome;

namespace {

struct Run {
  std::string what;
  ir::Graph graph;
  Tensors arguments;
  Outcome expected = {}, found = {};
};

std::vector<Run> runs_of(DType dtype, const ir::test::SampleOptions& options) {
  std::vector<Run> runs;
  ir::test::for_each_graph(dtype, options, [&](const ir::Graph& graph, const ir::Sample& sample) {
    const std::string_view op = graph[graph.outputs[0].value].op->name.value;
    runs.push_back({fmt::format("{} {} number {}", op, lathe::name(dtype), runs.size()), graph,
                    ir::test::sample_arguments(graph, sample, options.layout, ir::test::unknown_sizes(sample))});
  });
  return runs;
}

void run_one(Run& run, const CompileOptions& options) {
  run.expected = test::outcome([&] { return ir::interpret(run.graph, run.arguments); });
  run.found = test::outcome([&] {
    Executable executable = compile(run.graph, options);
    return test::run_with_states(executable, run.arguments);
  });
}

void check(DType dtype, Layout layout, double tolerance) {
  const auto options = test::gpu_options();
  if (!options) return;
  std::vector<Run> runs = runs_of(dtype, {.layout = layout});
  test::on_all_cpus(runs.size(), [&](std::size_t i) { run_one(runs[i], *options); });
  CHECK(runs.size() > 300);
  for (const Run& run : runs) {
    INFO(run.what);
    CHECK(run.found.label == run.expected.label);
    if (!run.found.label.empty() || !run.expected.label.empty()) continue;
    for (const auto& [name, value] : run.expected.results) {
      INFO(name);
      CHECK(test::error_of(run.found.results.at(name), value) <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("ops in f32", "[ops]") { check(f32, Layout::contiguous, 1e-5); }
TEST_CASE("ops in f64", "[ops]") { check(f64, Layout::contiguous, 1e-12); }
TEST_CASE("ops in bf16", "[ops]") { check(bf16, Layout::contiguous, 1.6e-2); }
TEST_CASE("ops in f16", "[ops]") { check(f16, Layout::contiguous, 2e-3); }
TEST_CASE("ops of strided operands", "[ops]") { check(f32, Layout::strided, 1e-5); }
