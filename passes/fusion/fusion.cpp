#include "passes/fusion/fusion.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/containers/jagged_list.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/loop_views.h"
#include "passes/fusion/attention/attention_regions.h"
#include "passes/fusion/inline_policy.h"
#include "passes/fusion/join_columns.h"
#include "passes/fusion/member_dims.h"
#include "passes/fusion/merge.h"
#include "passes/fusion/order/schedule_order.h"
#include "passes/fusion/prepare/align.h"
#include "passes/fusion/prepare/copied_operands.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/fusion/reads.h"
#include "passes/fusion/regions/gathered_reads.h"
#include "passes/fusion/regions/own_region.h"
#include "passes/fusion/regions/region_graph.h"
#include "passes/fusion/regions/region_size.h"
#include "passes/fusion/row_sums.h"
#include "passes/fusion/scatter_base.h"

namespace lathe {

using namespace ir;

bool is_splat(const Node& node) {
  return node.op == &ops::constant && node.attrs.get<NumberList>("values").size() == 1;
}

bool reduces_by(const Node& node, ScalarOp op) {
  const auto* reduce = node.op->as<Reduce>();
  return reduce && reduce->combine == op;
}

std::vector<int> reduced_dims(const Graph& graph, const Node& reduce) {
  const int rank = graph[reduce.operands[0]].type.rank();
  return rules::normalize_axes(reduce.attrs.get<std::vector<std::int64_t>>("dims"), rank);
}

bool folds_trailing_dims(const Graph& graph, const Node& reduce) {
  const Shape& shape = graph[reduce.operands[0]].type.shape;
  const std::vector<int> dims = reduced_dims(graph, reduce);
  bool kept_one = false;  // from the last dim outwards
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i].is(1)) continue;
    const bool folded = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (folded && kept_one) return false;
    kept_one = kept_one || !folded;
  }
  return true;
}

namespace {

/// Grows regions node by node, in topological order.
class Planner {
 public:
  Planner(const Graph& graph, const FusionOptions& options)
      : graph_(graph), options_(options), users_(graph), results_(graph, false), plan_(graph) {
    for (const ValueId id : graph.results()) results_[id] = true;
    if (options.attention)
      attention_ =
          AttentionRegions(graph, plan_, {options.attention_sums, options.attention_costs, options.attention_decode});
    inline_beside_attentions();
    reads_ = all_reads(graph, plan_.inlined);
    region_graph_.emplace(graph_, plan_, attention_, reads_);
    sizes_.emplace(graph_, plan_, reads_);
    gathers_.emplace(graph_, plan_, reads_, options_.most_gathers);
  }

  FusionPlan run() {
    for (const ValueId id : placement_order()) place(id);
    merge_regions(plan_, attention_, graph_, reads_, options_);
    attention_.absorb_outputs(plan_);
    if (options_.most_columns > 0) join_columns(plan_, graph_, reads_, options_.most_columns);
    mark_stored();
    order_regions(plan_, graph_, reads_);
    return std::move(plan_);
  }

 private:
  bool is_computed(ValueId id) const { return is_computed_in_region(graph_, id, plan_.inlined); }

  /// Returns the nodes outside of attentions in graph order, except that nodes that read an attention come after
  /// everything that the attention reads. When a node joins a region, every path through an attention is then known.
  std::vector<ValueId> placement_order() const {
    const std::size_t n = graph_.nodes.size();
    const auto unit = [&](ValueId id) {  // the node's own unit, or that of its attention
      return plan_.region(id) < 0 ? static_cast<std::size_t>(id.index) : n + attention_.unit_of(plan_.region(id));
    };
    const JaggedList<std::size_t> readers(n + plan_.regions.size(), [&](const auto& add) {
      for (const ValueId id : all_values(graph_)) {
        const int summed = attention_.region_summed_by(id);  // an output matmul reads for its attention
        for (const Read& read : reads_[id]) {
          const std::size_t from = unit(read.value);
          if (from != unit(id)) add(from, unit(id));
          if (summed >= 0 && plan_.region(read.value) != summed) add(from, n + attention_.unit_of(summed));
        }
      }
    });
    std::vector<int> waits(readers.size(), 0);
    for (std::size_t u = 0; u < readers.size(); ++u)
      for (const std::size_t reader : readers[u]) ++waits[reader];
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    std::vector<std::size_t> attentions;  // ready ones
    const auto release = [&](std::size_t u) { u < n ? ready.push(u) : attentions.push_back(u); };
    for (std::size_t u = 0; u < waits.size(); ++u)
      if (waits[u] == 0) release(u);
    std::vector<ValueId> order;
    while (!attentions.empty() || !ready.empty()) {
      std::size_t next = 0;
      if (attentions.empty()) {
        next = ready.top();
        ready.pop();
        const ValueId id{static_cast<std::int32_t>(next)};
        if (is_computed(id) && plan_.region(id) < 0) order.push_back(id);
      } else {
        next = attentions.back();
        attentions.pop_back();
      }
      for (const std::size_t reader : readers[next])
        if (--waits[reader] == 0) release(reader);
    }
    LATHE_ASSERT(std::ranges::all_of(waits, [](int waiting) { return waiting == 0; }));
    return order;
  }

  /// Chooses the nodes to inline outside of attentions. `copied_operands` and `row_operands` do not apply to the
  /// matmuls of attentions.
  void inline_beside_attentions() {
    using Marks = NodeMap<bool>;
    const auto is_alone = [&](ValueId product) {
      return plan_.region(product) < 0 && attention_.region_summed_by(product) < 0;
    };
    const Marks chosen = choose_inlined(
        graph_, options_.row_sums ? find_row_sums(graph_) : Marks{},
        options_.copied_operands > 0 ? find_copied_operands(graph_, options_.copied_operands, is_alone) : Marks{});
    const Marks rows = find_row_operands(graph_, options_.row_operands, is_alone);
    for (const ValueId id : all_values(graph_))
      if (plan_.region(id) < 0 && (chosen[id] || rows[id])) plan_.inlined[id] = true;
  }

  void place(ValueId id) {
    place_beside(id);
    region_graph_->note({&id, 1}, plan_.region(id));
  }

  void place_beside(ValueId id) {
    const Node& node = graph_[id];
    if (node.op->as<Contraction>()) {
      start(id, RegionKind::product, node.type.shape);
      if (const int attention = attention_.region_summed_by(id); attention >= 0)
        attention_.add_output(attention, plan_.region(id));
    } else if (const auto own = own_region(node)) {
      if (!join_other_segments(id) && !join_other_results(id)) start(id, *own, node.type.shape);
    } else if (node.op->as<Reduce>()) {
      place_reduction(id);
    } else if (!add_in_place(id) && !join(id)) {
      start(id, RegionKind::rows, node.type.shape);
    }
  }

  /// The matmuls of a matrix's segments run in parallel, as one region.
  bool join_other_segments(ValueId id) {
    const Node& node = graph_[id];
    if (node.op != &ops::segment_outer) return false;
    for (const ValueId other : users_[node.operands[0]]) {
      const int r = plan_.region(other);
      if (other == id || r < 0 || graph_[other].op != node.op || graph_[other].operands != node.operands) continue;
      if (!may_come_as_early(options_.recomputed, {id}, plan_.regions[r].members)) continue;
      add_member(id, r);
      return true;
    }
    return false;
  }

  /// All results of a loop are one region.
  bool join_other_results(ValueId id) {
    if (!is_loop(graph_[id])) return false;
    for (std::size_t r = 0; r < plan_.regions.size(); ++r) {
      const Region& region = plan_.regions[r];
      if (region.kind() != RegionKind::loop || !is_same_loop(graph_[region.members[0]], graph_[id])) continue;
      add_member(id, static_cast<int>(r));
      return true;
    }
    return false;
  }

  /// Adds a node that has a domain of its own.
  void add_member(ValueId id, int region) {
    plan_.region_of[id] = region;
    plan_.regions[region].members.push_back(id);
    plan_.dims[id] = plan_.space[id] = identity_dims(graph_[id].type.shape);
    sizes_->note(id);
  }

  /// The base of a scatter_add is computed in the storage of the sum. If the base is such a sum itself, this includes
  /// everything in its storage.
  bool add_in_place(ValueId id) {
    const auto found = options_.scatter_in_place ? scatter_base(graph_, plan_, users_, results_, id) : std::nullopt;
    if (!found || would_cycle(id, plan_.region(found->scatter))) return false;
    plan_.region_of[id] = plan_.region(found->scatter);
    plan_.regions[plan_.region(found->scatter)].members.push_back(id);
    plan_.dims[id] = plan_.space[id] = identity_dims(graph_[id].type.shape);
    for (Placement& placement : plan_.placement)
      if (placement.base == found->base) placement.base = id;
    plan_.stored[found->base] = true;
    sizes_->note(id);
    return true;
  }

  void place_reduction(ValueId id) {
    const Node& node = graph_[id];
    const Shape& space = index_space(graph_, node);
    if (!folds_trailing_dims(graph_, node)) {
      start(id, RegionKind::columns, space);
      set_reduced_dims(id, identity_dims(space));
      return;
    }
    if (join(id)) return;
    start(id, RegionKind::rows, space);
    plan_.regions.back().form = RowsRegion{.inner = inner_count(node, identity_dims(space), space.rank())};
    set_reduced_dims(id, identity_dims(space));
  }

  void start(ValueId id, RegionKind kind, Shape domain) {
    plan_.region_of[id] = static_cast<int>(plan_.regions.size());
    plan_.dims[id] = plan_.space[id] = identity_dims(graph_[id].type.shape);
    plan_.regions.push_back({.form = form_of(kind), .domain = std::move(domain), .members = {id}});
    sizes_->note(id);
  }

  /// Returns the number of trailing domain dims that the reduction folds, given the domain dims of its operand; -1 if
  /// they are not trailing.
  int inner_count(const Node& reduce, const std::vector<int>& dims, int rank) const {
    const Shape& space = index_space(graph_, reduce);
    int first = rank;
    std::size_t count = 0;
    for (const int d : reduced_dims(graph_, reduce)) {
      if (space[d].is(1)) continue;
      first = std::min(first, dims[d]);
      ++count;
    }
    std::size_t wanted = 0;
    for (const int d : dims)
      if (d >= first) ++wanted;
    if (wanted != count) return -1;
    return std::max(rank - first, 1);
  }

  void set_reduced_dims(ValueId id, const std::vector<int>& operand_dims) {
    plan_.dims[id] = result_dims(graph_, graph_[id], operand_dims);
    plan_.space[id] = operand_dims;
  }

  bool join(ValueId id) {
    std::vector<int> candidates;
    for (const Read& read : reads_[id])
      if (const int r = plan_.region(read.value); r >= 0) candidates.push_back(r);
    std::sort(candidates.rbegin(), candidates.rend());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    for (const int r : candidates)
      if (join(id, r)) return true;
    return false;
  }

  bool join(ValueId id, int r) {
    Region& region = plan_.regions[r];
    const Node& node = graph_[id];
    const bool reduction = node.op->as<Reduce>() != nullptr;
    if (region.kind() != RegionKind::rows && region.kind() != RegionKind::product) return false;
    if (!may_come_as_early(options_.recomputed, {id}, region.members) || !sizes_->takes(r, id)) return false;
    if (region.kind() == RegionKind::product && (reduction || better_left_to_its_reduction(id, r))) return false;
    const Shape& space = index_space(graph_, node);
    const auto dims = align(graph_, plan_, region, space, reads_[id]);
    if (!dims || would_cycle(id, r)) return false;
    if (reduction) {
      if (!covers_domain(region, *dims)) return false;
      const int inner = inner_count(node, *dims, region.domain.rank());
      const int before = region.rows().inner;
      if (inner < 0 || (before > 0 && before != inner)) return false;
      if ((before == 0 && !can_become_rows(region, inner)) || !gathers_->allow(r, inner)) return false;
      region.form = RowsRegion{.inner = inner};
      set_reduced_dims(id, *dims);
    } else {
      if (!gathers_->allow(r, id, *dims) || leaves_its_reduction(id, r, *dims)) return false;
      plan_.dims[id] = plan_.space[id] = *dims;
    }
    plan_.region_of[id] = r;
    region.members.push_back(id);
    sizes_->note(id);
    return true;
  }

  /// Elementwise members stay valid if a reduction over the last `inner` dims joins. A domain whose inner dims all
  /// have size 1 has nothing to fold.
  static bool can_become_rows(const Region& region, int inner) { return inner <= region.domain.rank(); }

  /// A point-wise node that a row reduction reads should join that reduction if the matmul's result that it reads is
  /// stored for other readers anyway. Joining the matmul would only store one more tensor.
  bool better_left_to_its_reduction(ValueId id, int r) const {
    const auto users = users_[id];
    const bool reduced = std::any_of(users.begin(), users.end(), [&](ValueId user) {
      return graph_[user].op->as<Reduce>() && folds_trailing_dims(graph_, graph_[user]);
    });
    if (!reduced) return false;
    for (const Read& read : reads_[id])
      if (plan_.region(read.value) == r && users_[read.value].size() > 1) return true;
    return users.size() == 1;
  }

  /// Whether a point-wise node should leave region r to be with its only reader, a reduction of other dims than those
  /// of the region, for which it would be stored; not if several values of r would then be stored for the node.
  bool leaves_its_reduction(ValueId id, int r, const std::vector<int>& dims) const {
    const Region& region = plan_.regions[r];
    const auto users = users_[id];
    if (users.size() != 1 || !graph_[users[0]].op->as<Reduce>() || !folds_trailing_dims(graph_, graph_[users[0]]))
      return false;
    const int inner = inner_count(graph_[users[0]], dims, region.domain.rank());
    if (inner >= 0 && (region.folded_dims() == 0 || region.folded_dims() == inner)) return false;
    return std::ranges::count_if(reads_[id], [&](const Read& read) {
             return plan_.region(read.value) == r && users_[read.value].size() == 1;
           }) <= 1;
  }

  /// Whether an operand of the node depends on region r through another region.
  bool would_cycle(ValueId id, int r) const {
    std::vector<int> others;
    for (const Read& read : reads_[id])
      if (const int other = plan_.region(read.value); other >= 0 && other != r) others.push_back(other);
    return region_graph_->depends_on(others, r);
  }

  void mark_stored() {
    const auto store = [&](ValueId id) { plan_.stored[plan_.placement[id].base] = true; };
    for (const ValueId id : graph_.results()) store(id);
    for (const ValueId id : all_values(graph_)) {
      if (graph_[id].op->as<Argument>()) plan_.stored[id] = true;
      for (const Read& read : reads_[id])
        if (plan_.region(read.value) != plan_.region(id)) store(read.value);
    }
  }

  const Graph& graph_;
  FusionOptions options_;
  Users users_;
  NodeMap<bool> results_;  // whether the graph returns it
  NodeReads reads_;
  std::optional<RegionGraph> region_graph_;
  std::optional<RegionSizes> sizes_;
  std::optional<GatheredReads> gathers_;
  FusionPlan plan_;
  AttentionRegions attention_;
};

}  // namespace

std::vector<int> drop_empty_regions(FusionPlan& plan) {
  std::vector<int> now(plan.regions.size(), -1);
  std::vector<Region> kept;
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    if (plan.regions[r].members.empty()) continue;
    now[r] = static_cast<int>(kept.size());
    kept.push_back(std::move(plan.regions[r]));
  }
  plan.regions = std::move(kept);
  for (int& r : plan.region_of)
    if (r >= 0) r = now[r];
  return now;
}

FusionPlan plan_fusion(const Graph& graph, const FusionOptions& options) {
  verify_prepared(graph);
  return Planner(graph, options).run();
}

}  // namespace lathe
