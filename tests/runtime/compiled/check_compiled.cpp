#include "tests/runtime/compiled/check_compiled.h"

#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/guarded_program.h"
#include "tests/support/programs/program_interpreter.h"

namespace lathe::test {

using namespace ir;

Graph parse(std::string_view text) {
  Graph graph = parse_graph(text, "test");
  verify(graph);
  return graph;
}

void check_compiled(const Graph& graph, const CheckOptions& options) {
  INFO("seed " << options.seed << "\n" << print(graph, {.locations = false}));
  const CompileOptions how{.threads = 2, .cache = options.store, .poison = true};
  Executable executable = compile(graph, how);
  GuardedProgram guarded(graph, executable, how);
  std::vector<ProgramInterpreter> programs;
  if (options.interpret_kernels)
    for (const CpuInfo& target : {cpu_with(128), cpu_with(256, {.dot_pairs = true}), cpu_with(512, {.tiles = true})})
      programs.emplace_back(graph, target);
  for (const DimBindings& dims : options.sizes) {
    INFO(to_string(dims));
    const Tensors arguments = random_arguments(graph, dims, options.seed, options.top);
    const Outcome expected = outcome([&] { return interpret(graph, arguments); });
    check_same(outcome([&] { return run_with_states(executable, arguments); }), expected, options.tolerance);
    {
      INFO("between inaccessible pages");
      check_same(outcome([&] { return guarded.run(arguments); }), expected, options.tolerance);
    }
    for (const ProgramInterpreter& program : programs) {
      INFO("by the kernel interpreter");
      check_same(outcome([&] { return program.run(arguments); }), expected, options.tolerance);
    }
  }
}

void check(std::string_view text, CheckOptions options) {
  static KernelStore store;
  options.store = &store;
  check_compiled(parse(text), options);
}

}  // namespace lathe::test
