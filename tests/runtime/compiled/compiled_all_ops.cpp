#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/amplified_errors.h"
#include "tests/support/graphs/sample_graphs.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/program_interpreter.h"

/// Every sample of every op, its value and its gradients, compiled and compared with the interpreter.
namespace lathe::ir::test {

namespace {

using lathe::test::check_close;
using lathe::test::check_same;
using lathe::test::KernelStore;
using lathe::test::Outcome;
using lathe::test::outcome;
using lathe::test::ProgramInterpreter;

/// Compiles every sample's graph and compares it with the interpreter, which rounds to the dtype.
void check_compiled(DType dtype, Layout layout, double tolerance, int at_least) {
  KernelStore store;
  const int seen = for_each_graph(dtype, {.layout = layout}, [&](const Graph& graph, const Sample& sample) {
    const Tensors arguments = sample_arguments(graph, sample, layout, {});
    Executable executable = compile(graph, {.threads = 1, .cache = &store});
    check_close(executable.run(arguments), interpret(graph, arguments), tolerance);
  });
  CHECK(seen > at_least);
}

/// Runs the graph in the interpreter and compiled. Returns whether there was a result. (If a gather copies nothing,
/// only the interpreter checks its indices.)
bool check_same_run(const Graph& graph, Executable& executable, const Tensors& arguments, double tolerance) {
  const Outcome expected = outcome([&] { return interpret(graph, arguments); });
  const Outcome found = outcome([&] { return executable.run(arguments); });
  const bool unread = found.label.empty() && found.results.at("y").numel() == 0 && expected.label == "index_range";
  if (!unread) check_same(found, expected, tolerance);
  return expected.label.empty();
}

void check_unknown_dims(DType dtype, Layout layout, double tolerance) {
  KernelStore store;
  int runs = 0;
  for_each_graph(dtype, {.layout = layout, .sizes = Sizes::unknowns}, [&](const Graph& graph, const Sample& sample) {
    Executable executable = compile(graph, {.threads = 1, .cache = &store});
    const double amplified = lathe::test::amplified_errors(graph);
    for (const auto sizes : {more, one, none, same}) {
      const Sample other = resized(sample, sizes);
      DimBindings dims = unknown_sizes(sample);
      for (auto& [name, size] : dims) size = size > 1 ? sizes(size) : size;
      CAPTURE(sizes(3));
      Tensors arguments;
      try {
        arguments = sample_arguments(graph, other, layout, dims);
      } catch (const UserError&) {
        continue;  // a dim such as n3 - 2 is negative for these sizes
      }
      runs += check_same_run(graph, executable, arguments, tolerance * amplified) ? 1 : 0;
    }
  });
  CHECK(runs > 1000);
}

}  // namespace

TEST_CASE("compiled ops in f64") { check_compiled(f64, Layout::contiguous, 1e-12, 500); }
TEST_CASE("compiled ops in f32") { check_compiled(f32, Layout::contiguous, 3e-6, 400); }
TEST_CASE("compiled ops in bf16") { check_compiled(bf16, Layout::contiguous, 1.6e-2, 400); }
TEST_CASE("compiled ops in f16") { check_compiled(f16, Layout::contiguous, 2e-3, 400); }
TEST_CASE("compiled ops of strided operands") { check_compiled(f64, Layout::strided, 1e-12, 500); }
TEST_CASE("compiled ops of unknown dims, bound several ways") { check_unknown_dims(f32, Layout::contiguous, 1e-5); }

TEST_CASE("kernels of every op stay in bounds and do not depend on the order of iterations") {
  int bits = 128;
  for (const Sizes sizes : {Sizes::numbers, Sizes::unknowns})
    for (const Layout layout : {Layout::contiguous, Layout::strided})
      for_each_graph(f64, {.layout = layout, .sizes = sizes}, [&](const Graph& graph, const Sample& sample) {
        bits = bits == 512 ? 128 : bits * 2;
        const Tensors arguments = sample_arguments(graph, sample, layout, unknown_sizes(sample));
        const ProgramInterpreter program(graph, lathe::test::cpu_with(bits));
        check_close(program.run(arguments), interpret(graph, arguments), 1e-12);
      });
}

}  // namespace lathe::ir::test
