#include "passes/fusion/text/parse_regions.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/verifier.h"
#include "passes/fusion/member_dims.h"
#include "passes/fusion/order/schedule_order.h"
#include "passes/fusion/reads.h"
#include "passes/fusion/regions/own_region.h"
#include "passes/fusion/text/region_roles.h"
#include "passes/fusion/text/written_regions.h"

namespace lathe {

using namespace ir;
using ir::detail::GraphTokens;
using ir::detail::LabelledGraph;
using ir::detail::Token;

namespace {

/// Builds the plan of written regions and their graph.
class PlanReader {
 public:
  PlanReader(const GraphTokens& in, const WrittenRegions& written, const LabelledGraph& from)
      : in_(in), written_(written), from_(from), graph_(from.graph), plan_(from.graph) {}

  FusionPlan run() {
    for (const WrittenNode& node : written_.inlined) plan_.inlined[inlined(node)] = true;
    for (const WrittenNode& node : written_.constants) plan_.stored[constant(node)] = true;
    for (const ValueId id : graph_.arguments()) plan_.stored[id] = true;
    for (const WrittenRegion& region : written_.regions) add(region);
    require_all();
    place();
    reads_ = all_reads(graph_, plan_.inlined);
    for (std::size_t r = 0; r < plan_.regions.size(); ++r) check_order(static_cast<int>(r));
    plan_.last_reader_first = last_readers_first(plan_, graph_, reads_);
    return std::move(plan_);
  }

 private:
  std::string text(ValueId id) const { return fmt::format("%{} {}", id.index, graph_[id].op->name.value); }

  ValueId find(const Token& label) const {
    const ValueId id = from_.find(label);
    if (!id.valid()) in_.fail(label, fmt::format("the graph has no value {}", label.spelling));
    return id;
  }

  ValueId find(const Token& label, const Token& op) const {
    const ValueId id = find(label);
    if (graph_[id].op->name.value != op.spelling)
      in_.fail(op, fmt::format("{} is a {} in the graph, not a {}", label.spelling, graph_[id].op->name.value,
                               op.spelling));
    return id;
  }

  ValueId inlined(const WrittenNode& node) const {
    const ValueId id = find(node.value, node.op);
    const Node& found = graph_[id];
    if (found.op->as<Argument>()) in_.fail(node.value, "an argument is not computed");
    if (is_alias(found)) in_.fail(node.value, "a view is not computed");
    return id;
  }

  ValueId constant(const WrittenNode& node) const {
    const ValueId id = find(node.value, node.op);
    if (graph_[id].op != &ops::constant) in_.fail(node.op, "expected a constant");
    return id;
  }

  void add(const WrittenRegion& from) {
    Region region{.form = form_of(from.kind), .domain = from.domain, .members = {}};
    auto* attention = std::get_if<AttentionRegion>(&region.form);
    if (auto* rows = std::get_if<RowsRegion>(&region.form)) rows->inner = rank_at_most(from, from.inner);
    if (attention) {
      if (from.row < 0 || from.row + 1 >= from.domain.rank())
        in_.fail(from.first, "an attention has a dim of rows before that of the columns");
      attention->row = from.row;
      attention->sequential = from.sequential;
      attention->accumulated = from.accumulated;
    }
    for (const WrittenMember& member : from.members) {
      const ValueId id = add(member, from);
      region.members.push_back(id);
      if (!attention) continue;
      if (member.role == "output product")
        attention->outputs.push_back({.form = ProductRegion{}, .domain = graph_[id].type.shape, .members = {}});
      (attention->outputs.empty() ? attention->scores : attention->outputs.back().members).push_back(id);
    }
    if (attention && attention->scores.empty()) in_.fail(from.first, "this attention has no scores");
    if (attention) std::sort(region.members.begin(), region.members.end());
    check_kind(from, region);
    plan_.regions.push_back(std::move(region));
  }

  int rank_at_most(const WrittenRegion& region, int dims) const {
    if (dims > region.domain.rank()) in_.fail(region.first, "this region reduces more dims than its domain has");
    return dims;
  }

  ValueId add(const WrittenMember& member, const WrittenRegion& region) {
    const ValueId id = find(member.value, member.op);
    // A member of one attention may also be computed by the members of another one.
    const bool is_shared = region.kind == RegionKind::attention && plan_.is_inlined(id);
    if (!is_shared && !is_computed_in_region(graph_, id, plan_.inlined))
      in_.fail(member.value, fmt::format("{} cannot be in a region", member.value.spelling),
               "views, arguments, constants and values that their readers compute are in no region");
    if (plan_.region(id) >= 0)
      in_.fail(member.value, fmt::format("{} is in region {} already", member.value.spelling, plan_.region(id)));
    check_role(member, region, id);
    check_type(member, graph_[id].type);
    plan_.region_of[id] = static_cast<int>(plan_.regions.size());
    plan_.stored[id] = member.stored;
    MemberDims dims = own_dims(graph_, graph_[id]);
    if (member.dims) dims = {*member.dims, *member.space};
    check_dims(member, dims.dims, graph_[id].type.shape, region);
    check_dims(member, dims.space, index_space(graph_, graph_[id]), region);
    plan_.dims[id] = std::move(dims.dims);
    plan_.space[id] = std::move(dims.space);
    return id;
  }

  void check_role(const WrittenMember& member, const WrittenRegion& region, ValueId id) {
    const bool is_output = member.role == "output product";
    if (&member == region.members.data()) in_output_ = false;
    in_output_ = in_output_ || is_output;
    const std::string_view role =
        role_of(graph_[id], {region.kind, in_output_, &member == region.members.data() || is_output});
    if (member.role != role)
      in_.fail(member.first, fmt::format("the role of {} here is {}, not {}", text(id), role, member.role));
  }

  void check_type(const WrittenMember& member, const TensorType& type) const {
    if (member.type.dtype == type.dtype && member.type.shape == type.shape) return;
    in_.fail(member.type.first, fmt::format("{} is {} in the graph", member.value.spelling, type.to_string()));
  }

  void check_dims(const WrittenMember& member, const std::vector<int>& dims, const Shape& shape,
                  const WrittenRegion& region) const {
    if (dims.size() != static_cast<std::size_t>(shape.rank()))
      in_.fail(member.value, fmt::format("{} dims of the domain are given for {}", dims.size(), shape.to_string()));
    if (region.kind == RegionKind::loop) return;  // each result of a loop has dims of its own
    for (const int dim : dims)
      if (dim >= region.domain.rank())
        in_.fail(member.value, fmt::format("the domain {} has no dim {}", region.domain.to_string(), dim),
                 "give the dims of the domain of this value: dims [0, -]");
  }

  /// A region of most kinds starts with the node that it is for.
  void check_kind(const WrittenRegion& from, const Region& region) const {
    const Node& first = graph_[region.members.front()];
    const RegionKind kind = region.kind();
    const auto own = own_region(first);
    const bool fits = kind == RegionKind::product     ? first.op->as<Contraction>() != nullptr
                      : kind == RegionKind::columns   ? first.op->as<Reduce>() != nullptr
                      : kind == RegionKind::attention ? !own
                      : kind == RegionKind::rows      ? !own && !first.op->as<Contraction>()
                                                      : own == kind;
    if (!fits)
      in_.fail(from.members.front().value,
               fmt::format("a {} is not the first member of a {} region", first.op->name.value, name(kind)));
  }

  void require_all() const {
    for (const ValueId id : all_values(graph_))
      if (is_computed_in_region(graph_, id, plan_.inlined) && plan_.region(id) < 0)
        in_.source().fail(0, 1, fmt::format("{} is in no region and is not computed by its readers", text(id)),
                          "each computed value is a member of one region");
  }

  /// Moves values, and the views of them, to the storage of the members that are written after `in`.
  void place() {
    NodeMap<ValueId> storage(graph_);
    for (const WrittenRegion& region : written_.regions)
      for (const WrittenMember& member : region.members) {
        if (!member.in) continue;
        const ValueId base = find(*member.in);
        if (plan_.region(base) < 0) in_.fail(*member.in, fmt::format("{} is in no region", member.in->spelling));
        storage[find(member.value)] = base;
      }
    for (Placement& placement : plan_.placement)
      if (const ValueId base = storage[placement.base]; base.valid()) placement.base = base;
  }

  void check_order(int r) const {
    const WrittenRegion& region = written_.regions[r];
    std::vector<ValueId> before;
    for (const ValueId id : plan_.regions[r].members) {
      for (const Read& read : reads_[id]) {
        const int from = plan_.region(read.value);
        if (from > r)
          in_.fail(region.first,
                   fmt::format("region {} reads {} of region {}, which runs later", r, text(read.value), from));
        if (from == r && std::ranges::find(before, read.value) == before.end())
          in_.fail(region.first, fmt::format("{} comes before {}, which it reads", text(id), text(read.value)));
      }
      before.push_back(id);
    }
  }

  const GraphTokens& in_;
  const WrittenRegions& written_;
  const LabelledGraph& from_;
  const Graph& graph_;
  FusionPlan plan_;
  NodeReads reads_;
  bool in_output_ = false;  // whether the current member of an attention is of an output
};

}  // namespace

FusedGraph parse_fused_graph(std::string_view text, std::string_view file) {
  const ir::detail::Source source(text, file);
  const ParseLimits limits;
  if (text.size() > limits.bytes) source.fail(0, 1, fmt::format("the text has more than {} bytes", limits.bytes));
  GraphTokens in(source, limits);
  const WrittenRegions written = parse_written_regions(in);
  LabelledGraph from = ir::detail::parse_written_graph(in);
  if (in.peek().kind != ir::detail::TokenKind::end) in.fail_expected("the end of the text after the graph's '}'");
  verify(from.graph);
  FusionPlan plan = PlanReader(in, written, from).run();
  return {std::move(from.graph), std::move(plan)};
}

}  // namespace lathe
