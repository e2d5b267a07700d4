#include "passes/cpu/explain_cpu_attention.h"

#include <algorithm>
#include <variant>

#include <fmt/core.h>

#include "ir/kernel/structure_rules.h"
#include "passes/cpu/lower_cpu.h"
#include "passes/fusion/attention/explain_attention.h"

namespace lathe {

namespace {

std::string what_multiplies(const kernel::Kernel& kernel) {
  const kernel::TileMma* tiles = nullptr;
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& statement) {
    if (const auto* found = std::get_if<kernel::TileMma>(&statement.node)) tiles = found;
  });
  if (tiles) return tiles->sliced ? "tile_mma, f32 as slices of bf16" : "tile_mma";
  const bool pairs = std::any_of(kernel.values.begin(), kernel.values.end(),
                                 [](const kernel::Instruction& i) { return i.op == kernel::Opcode::dot_pairs; });
  return pairs ? "dot products of pairs of bf16" : "fma";
}

}  // namespace

std::string explain_cpu_attention(const ir::Graph& graph, const VectorTarget& target, AttentionCosts costs) {
  const Machine machine = cpu_machine(target, costs);
  const Program program = lower(graph, machine);
  const auto tell = [&](const ir::Graph&, const AttentionGroup& group) {
    std::string text;
    for (const Launch& launch : program.launches)
      if (launch.runs(group.consumers.front())) {
        const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
        text += fmt::format("    by {}: {}\n", kernel.name, what_multiplies(kernel));
      }
    return text;
  };
  return explain_attention(
      graph,
      {.search = {.sums = machine.fusion.attention_sums, .costs = costs, .blocks = machine.fusion.attention_blocks},
       .tell = tell});
}

}  // namespace lathe
