#include "passes/compile/run_order.h"

#include "ir/tensor/analysis/ancestors.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

Graph in_run_order(const Lowered& lowered) {
  GraphBuilder builder(lowered.graph.name);
  Rebuilder to(builder, lowered.graph);
  const auto add = [&](ValueId wanted) {
    for (const ValueId id : ancestors(lowered.graph, wanted, [&](ValueId each) { return !to.has(each); }))
      if (!to.has(id)) to.set(id, to.copy(lowered.graph[id]));
  };
  for (const ValueId argument : lowered.graph.arguments()) add(argument);
  for (const Region& region : lowered.regions.regions)
    for (const ValueId member : region.members) add(member);
  for (const ValueId result : lowered.graph.results()) add(result);
  to.close();
  return builder.finish();
}

}  // namespace lathe
