#include "passes/fusion/text/print_regions.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/visible.h"
#include "ir/tensor/text/position_labels.h"
#include "passes/fusion/member_dims.h"
#include "passes/fusion/regions/own_region.h"
#include "passes/fusion/text/region_roles.h"

namespace lathe {

using namespace ir;

std::string_view role_of(const Node& node, const MemberPlace& place) {
  if (node.op->as<Contraction>()) {
    if (place.kind != RegionKind::attention) return "product";
    return place.in_output ? "output product" : "scores";
  }
  if (node.op->as<Reduce>()) return "reduction";
  if (const auto own = own_region(node)) return name(*own);
  const bool is_epilogue = place.in_output || (place.kind == RegionKind::product && !place.is_first);
  return is_epilogue ? "epilogue" : "elementwise";
}

namespace {

class RegionsPrinter {
 public:
  RegionsPrinter(const FusionPlan& plan, const Graph& graph) : plan_(plan), graph_(graph) {}

  std::string run() {
    for (std::size_t r = 0; r < plan_.regions.size(); ++r) {
      const Region& region = plan_.regions[r];
      header(region, r);
      const auto* attention = std::get_if<AttentionRegion>(&region.form);
      if (!attention) members(region.members, {.kind = region.kind()});
      if (!attention) continue;
      members(attention->scores, {.kind = RegionKind::attention});
      for (const Region& output : attention->outputs)
        members(output.members, {.kind = RegionKind::attention, .in_output = true});
    }
    nodes("computed by their readers", [&](ValueId id) { return plan_.is_inlined(id); });
    nodes("stored constants", [&](ValueId id) { return plan_.is_stored(id) && graph_[id].op == &ops::constant; });
    return std::move(text_);
  }

 private:
  void header(const Region& region, std::size_t number) {
    text_ += fmt::format("region {} {} over {}", number, name(region.kind()), region.domain.to_string());
    if (const auto* attention = std::get_if<AttentionRegion>(&region.form)) {
      text_ += fmt::format(": rows along dim {}", attention->row);
      if (!attention->sequential.empty()) text_ += ", sequential dims " + list(attention->sequential);
      if (!attention->accumulated.empty()) text_ += ", accumulated dims " + list(attention->accumulated);
    } else if (const int inner = region.folded_dims(); inner > 0) {
      text_ += fmt::format(": {} trailing dim{} reduced", inner, inner == 1 ? "" : "s");
    }
    text_ += "\n";
  }

  void members(const std::vector<ValueId>& ids, MemberPlace place) {
    for (const ValueId id : ids) {
      const Node& node = graph_[id];
      place.is_first = id == ids.front();
      text_ += fmt::format(
          "  {:<14}  {:<6}  {:<48}  // {}\n", role_of(node, place), plan_.is_stored(id) ? "stored" : "",
          fmt::format("%{} {} : {}{}", id.index, node.op->name.value, node.type.to_string(), annotations(id)),
          visible(node.loc.to_string()));
    }
  }

  std::string annotations(ValueId id) const {
    std::string text;
    const MemberDims dims{plan_.member_dims(id), plan_.space_dims(id)};
    if (dims != own_dims(graph_, graph_[id])) {
      text += " dims " + list(dims.dims);
      if (dims.space != dims.dims) text += " of " + list(dims.space);
    }
    const ValueId base = plan_.placement[id].base;
    if (base != through_aliases(graph_, id)) text += fmt::format(" in %{}", base.index);
    return text;
  }

  static std::string list(const std::vector<int>& dims) {
    std::vector<std::string> items;
    for (const int dim : dims) items.push_back(dim < 0 ? "-" : fmt::format("{}", dim));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }

  template <class Wanted>
  void nodes(std::string_view title, const Wanted& wanted) {
    std::vector<std::string> found;
    for (const ValueId id : all_values(graph_))
      if (wanted(id)) found.push_back(fmt::format("%{} {}", id.index, graph_[id].op->name.value));
    if (!found.empty()) text_ += fmt::format("{}: {}\n", title, fmt::join(found, ", "));
  }

  const FusionPlan& plan_;
  const Graph& graph_;
  std::string text_;
};

}  // namespace

std::string print_regions(const FusionPlan& plan, const Graph& graph) { return RegionsPrinter(plan, graph).run(); }

std::string print_fused_graph(const FusionPlan& plan, const Graph& graph) {
  return print_regions(plan, graph) + "\n" + print(graph, position_labels(graph));
}

}  // namespace lathe
