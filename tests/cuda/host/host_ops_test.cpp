#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "ir/kernel/interpret/scalar_eval.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/graphs/amplified_errors.h"
#include "tests/support/graphs/sample_graphs.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// The CUDA text of every op and its gradients, built on the host, compared with both interpreters.
namespace lathe::ir::test {

namespace {

using lathe::test::error_of;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;
using lathe::test::same_bits;

struct Case {
  std::string what;
  Graph graph;
  ProgramInterpreter program;
  Tensors arguments;
};

/// Returns the first sample of every op: in f32 with ragged symbolic sizes if it has any; else in f64 (this includes
/// integer and complex ops); else unchanged.
std::vector<Case> first_samples() {
  std::vector<Case> cases;
  std::set<std::string_view> seen;
  constexpr std::pair<DType, Sizes> ways[] = {
      {f32, Sizes::unknowns}, {f64, Sizes::unknowns}, {f32, Sizes::numbers}, {f64, Sizes::numbers}};
  for (const auto& [dtype, sizes] : ways)
    for_each_sample([&, dtype = dtype, sizes = sizes](const Op& op, const Sample& given, const std::string& what) {
      const auto sample = in_dtype(given, dtype);
      if (!sample || seen.contains(op.name.value)) return;
      const SampleOptions options{.layout = Layout::contiguous, .sizes = sizes};
      const auto resize = sizes == Sizes::unknowns ? more : same;
      try {
        Graph graph = graph_with_gradients(op, *sample, options);
        DimBindings dims = unknown_sizes(*sample);
        for (auto& [name, size] : dims) size = size > 1 ? resize(size) : size;
        Tensors arguments = sample_arguments(graph, resized(*sample, resize), options.layout, dims);
        interpret(graph, arguments);
        ProgramInterpreter program(graph, lower_gpu);
        cases.push_back({what, std::move(graph), std::move(program), std::move(arguments)});
        seen.insert(op.name.value);
      } catch (const UserError&) {
        // Not valid in this dtype or with these sizes.
      }
    });
  return cases;
}

bool is_exact(const Program& program) {
  return std::none_of(program.kernels.begin(), program.kernels.end(), [](const kernel::Kernel& k) {
    return std::any_of(k.values.begin(), k.values.end(), [](const kernel::Instruction& in) {
      return in.op == kernel::Opcode::scalar && traits(in.scalar_op).transcendental;
    });
  });
}

}  // namespace

TEST_CASE("CUDA text of every op on the host") {
  const std::vector<Case> cases = first_samples();
  CHECK(static_cast<std::ptrdiff_t>(cases.size()) >=
        std::ssize(all_ops()) - 5);  // without arguments, complex numbers
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases) {
    const auto& own = c.program.program().kernels;
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  int exact = 0;
  for (const Case& c : cases) {
    INFO(c.what);
    const Tensors expected = interpret(c.graph, c.arguments), interpreted = c.program.run(c.arguments);
    for (const std::uint64_t seed : {1, 2}) {
      const Tensors found = c.program.run(c.arguments, [&](const auto& kernel, auto buffers, auto dims) {
        return host->run(kernel, buffers, dims, seed);
      });
      for (const auto& [name, value] : expected) {
        INFO(name);
        CHECK(error_of(found.at(name), value) <= 1e-5 * lathe::test::amplified_errors(c.graph));
        if (is_exact(c.program.program())) CHECK(same_bits(found.at(name), interpreted.at(name)));
      }
    }
    exact += is_exact(c.program.program()) ? 1 : 0;
  }
  CHECK(exact > 20);
}

}  // namespace lathe::ir::test
