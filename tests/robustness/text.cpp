#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "codegen/llvm/jit.h"
#include "ir/support/visible.h"
#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "passes/autodiff/autodiff.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/cpu/cpu_backend.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/robustness/support/batch.h"
#include "tests/robustness/support/known_programs.h"
#include "tests/robustness/support/mutate.h"
#include "tests/support/programs/lower.h"

namespace lathe::robustness {

namespace {

std::string make_text(std::uint64_t seed) {
  Mutator mutator(seed);
  const std::span<const std::string> known = known_programs();
  const auto program = [&]() -> std::string {
    if (mutator.one_in(2)) return mutator.any(known);
    return ir::print(fuzz::random_case(static_cast<unsigned>(mutator.below(1000)), {.ops = 8}).graph);
  };
  const std::string text = program();
  return mutator.any_kind(text, program());
}

/// Checks that a parsed graph is valid, and that its printed text parses to the same graph.
void check_printed(const ir::Graph& graph) {
  if (const auto defect = ir::find_defect(graph)) throw Wrong("the parsed graph is invalid: " + *defect);
  const std::string text = ir::print(graph);
  if (visible_lines(text) != text) throw Wrong("the printed graph has control characters");
  const ir::Graph again = ir::parse_graph(text, "printed.lathe");
  if (const auto found = ir::difference(graph, again))
    throw Wrong("the printed graph parses to another graph: " + *found);
  for (const std::string& shown : {ir::print_short(graph), ir::explain(graph)})
    if (visible_lines(shown) != shown) throw Wrong("the short or explained graph has control characters");
}

/// Lowers a graph for a CPU. Some seeds also lower it for a GPU or emit assembly.
void compile(const ir::Graph& graph, std::uint64_t seed) {
  const ir::Graph simple = ir::run_pipeline(graph, ir::default_pipeline()).graph;
  const codegen::TargetCpu cpu = codegen::TargetCpu::named("x86-64-v3");
  const Program program = lower_cpu(simple, cpu_info(cpu));
  if (seed % 4 == 0) static_cast<void>(lower_gpu(simple));
  if (seed % 16 != 0) return;
  constexpr std::size_t most = 4;  // number of kernels; LLVM is slow
  for (std::size_t i = 0; i < std::min(program.kernels.size(), most); ++i)
    static_cast<void>(codegen::emit_assembly(program.kernels[i], cpu));
}

Answer check_text(std::uint64_t seed, const std::string& text) {
  const ir::Graph graph = ir::parse_graph(text, "mutant.lathe");
  check_printed(graph);
  if (seed % 3 == 0) {
    try {
      check_printed(ir::differentiate(graph, {.unused = ir::Unused::zeros}));
    } catch (const UserError&) {  // not every graph has gradients; it can still be compiled
    }
  }
  compile(graph, seed);
  return Answer::taken;
}

}  // namespace

void attack_text(Report& report) {
  try_mutants(report, 2000, {.make = make_text, .check = check_text, .ending = ".lathe"});
}

}  // namespace lathe::robustness
