#include "passes/fusion/print_regions.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ir/ops/primitives/primitives.h"
#include "passes/fusion/own_region.h"

namespace lathe {

using namespace ir;

namespace {

/// Returns the role of a node in a region; `part` is the part of an attention, 0 in every other region.
std::string_view role_of(const Node& node, const Region& region, std::size_t part, bool is_first) {
  if (node.op->as<Contraction>()) {
    if (region.kind != RegionKind::attention) return "product";
    return part == 0 ? "scores" : "output product";
  }
  if (node.op->as<Reduce>()) return "reduction";
  if (const auto own = own_region(node)) return name(*own);
  const bool is_epilogue = (region.kind == RegionKind::product && !is_first) || part > 0;
  return is_epilogue ? "epilogue" : "elementwise";
}

std::string header(const Region& region, std::size_t number) {
  std::string text = fmt::format("region {} {} over {}", number, name(region.kind), region.domain.to_string());
  if (region.attention)
    text += fmt::format(": rows along dim {}", region.attention->row);
  else if (region.inner > 0)
    text += fmt::format(": {} trailing dim{} reduced", region.inner, region.inner == 1 ? "" : "s");
  return text + "\n";
}

std::string members(const FusionPlan& plan, const Graph& graph, const Region& region, const std::vector<ValueId>& ids,
                    std::size_t part) {
  std::string text;
  for (const ValueId id : ids) {
    const Node& node = graph[id];
    const std::string value = fmt::format("%{} {} : {}", id.index, node.op->name.value, node.type.to_string());
    text += fmt::format("  {:<14}  {:<6}  {:<48}  {}", role_of(node, region, part, id == ids.front()),
                        plan.is_stored(id) ? "stored" : "", value, node.loc.to_string());
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string print_regions(const FusionPlan& plan, const Graph& graph) {
  std::string text;
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    const Region& region = plan.regions[r];
    text += header(region, r);
    const std::vector<Region> parts = region.attention ? region.attention->parts : std::vector{region};
    for (std::size_t part = 0; part < parts.size(); ++part)
      text += members(plan, graph, region, parts[part].members, part);
  }
  std::vector<std::string> inlined;
  for (const ValueId id : all_values(graph))
    if (plan.is_inlined(id)) inlined.push_back(fmt::format("%{} {}", id.index, graph[id].op->name.value));
  if (!inlined.empty()) text += fmt::format("computed by their readers: {}\n", fmt::join(inlined, ", "));
  return text;
}

}  // namespace lathe
