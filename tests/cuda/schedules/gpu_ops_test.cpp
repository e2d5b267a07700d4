#include <catch2/catch.hpp>

#include "codegen/cuda/mapping.h"
#include "tests/support/graphs/amplified_errors.h"
#include "tests/support/graphs/sample_graphs.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/check_results.h"

/// The values and gradients of every sample of every op, with the GPU schedules. The kernel interpreter runs blocks
/// and threads from barrier to barrier, checks every access and finds races.
namespace lathe::ir::test {

namespace {

using lathe::test::check_same;
using lathe::test::Outcome;
using lathe::test::outcome;
using lathe::test::ProgramInterpreter;

void check_samples(DType dtype, const SampleOptions& options, double tolerance,
                   const std::vector<std::int64_t (*)(std::int64_t)>& sizes, int at_least) {
  int runs = 0;
  for_each_graph(dtype, options, [&](const Graph& graph, const Sample& sample) {
    const ProgramInterpreter program(graph, lower_gpu);
    for (const kernel::Kernel& kernel : program.program().kernels) cuda::mapping_of(kernel, gpu_info("sm_80"));
    for (const auto resize : sizes) {
      const Sample other = resized(sample, resize);
      DimBindings dims = unknown_sizes(sample);
      for (auto& [name, size] : dims) size = size > 1 ? resize(size) : size;
      CAPTURE(resize(3));
      Tensors arguments;
      try {
        arguments = sample_arguments(graph, other, options.layout, dims);
      } catch (const UserError&) {
        continue;  // a dim such as n3 - 2 is negative for these sizes
      }
      const Outcome expected = outcome([&] { return interpret(graph, arguments); });
      const Outcome found = outcome([&] { return program.run(arguments); });
      // If a gather copies nothing, only the graph interpreter checks its indices.
      const bool unread =
          found.label.empty() && found.results.at("y").numel() == 0 && expected.label == "index_range";
      if (!unread) check_same(found, expected, tolerance * lathe::test::amplified_errors(graph));
      ++runs;
    }
  });
  CHECK(runs > at_least);
}

}  // namespace

TEST_CASE("GPU schedules of every op in f64") {
  check_samples(f64, {.layout = Layout::contiguous}, 1e-12, {same}, 500);
}
TEST_CASE("GPU schedules of every op in bf16 and f16") {
  check_samples(bf16, {.layout = Layout::contiguous}, 1.6e-2, {same}, 400);
  check_samples(f16, {.layout = Layout::contiguous}, 2e-3, {same}, 400);
}
TEST_CASE("GPU schedules of strided operands") {
  check_samples(f64, {.layout = Layout::strided}, 1e-12, {same}, 500);
}
TEST_CASE("GPU schedules of unknown dims, bound several ways") {
  check_samples(f32, {.layout = Layout::contiguous, .sizes = Sizes::unknowns}, 1e-5, {more, one, none}, 1000);
}

}  // namespace lathe::ir::test
