#include "passes/compile/sum_kinds.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"

namespace lathe {

using namespace ir;

std::string how_summed(const Graph& graph, const FusionPlan& regions, ValueId id) {
  const Node& node = graph[id];
  const bool sums = node.op->as<Reduce>() || node.op->as<Contraction>() || node.op == &ops::scatter_add;
  if (!sums || regions.region(id) < 0) return "";
  const Region& region = regions.regions[regions.region(id)];
  const bool added_to = region.kind() == RegionKind::scatter && region.members.size() > 1;
  return fmt::format("{} {} {} {}", static_cast<int>(region.kind()), region.domain.to_string(), region.folded_dims(),
                     added_to);
}

namespace {

void add_kinds(const Graph& graph, const Machine& machine, const LowerOptions& options, std::vector<Body>& seen,
               std::set<std::string>& kinds) {
  const FusionPlan regions = fuse_regions(graph, machine, options);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (const std::string how = how_summed(graph, regions, id); !how.empty())
      kinds.insert(fmt::format("{} {} {} {}", node.op->name.value, node.type.to_string(), node.loc.to_string(), how));
    if (!is_loop(node)) continue;
    const Body& body = loop_body(node);
    if (std::ranges::any_of(seen, [&](const Body& each) { return each.is_same(body); })) continue;
    seen.push_back(body);
    add_kinds(body.graph(), machine, options, seen, kinds);
  }
}

}  // namespace

std::set<std::string> sum_kinds(const Graph& graph, const Machine& machine, const LowerOptions& options) {
  std::vector<Body> seen;
  std::set<std::string> kinds;
  add_kinds(graph, machine, options, seen, kinds);
  return kinds;
}

}  // namespace lathe
