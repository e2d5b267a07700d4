#include "ir/ops/draws.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/fusion/attention/attention_grower.h"
#include "passes/fusion/inline_policy.h"
#include "passes/fusion/regions/region_size.h"

namespace lathe {

using namespace ir;

AttentionSubject::AttentionSubject(const Graph& g)
    : graph(g), users(g), inlined(choose_inlined(g)), in_memory(g, false), dependence(g), reads_(g) {
  for (const ValueId id : all_values(g)) {
    const Node& node = g[id];
    const bool generated = node.type.dtype == boolean || is_integer(node.type.dtype) || is_splat(node) ||
                           is_draw(*node.op) || node.op == &ops::iota;
    inlined[id] = inlined[id] && generated;
  }
  in_place = arithmetic_in_place(g, inlined);
  for (const ValueId id : g.results()) in_memory[id] = true;
  for (std::int32_t i = g.size() - 1; i >= 0; --i) {
    const Node& node = g[ValueId{i}];
    if (!is_alias(node)) continue;
    if (in_memory[{i}] || reshapes_memory(g, node)) in_memory[node.operands[0]] = true;
  }
}

const std::vector<Read>& AttentionSubject::reads(ValueId id) const {
  auto& found = reads_[id];
  if (!found) {
    const Node& node = graph[id];
    const bool own = !is_transparent(id) && !node.op->as<Argument>() && node.op != &ops::constant;
    found = own ? reads_of(graph, id, inlined) : std::vector<Read>();
  }
  return *found;
}

bool AttentionSubject::is_transparent(ValueId id) const { return is_alias(graph[id]) || inlined[id]; }

}  // namespace lathe
