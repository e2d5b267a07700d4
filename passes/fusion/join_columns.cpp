#include "passes/fusion/join_columns.h"

#include <algorithm>
#include <set>

#include "ir/support/containers/jagged_list.h"
#include "passes/fusion/regions/region_graph.h"
#include "passes/fusion/regions/region_size.h"

namespace lathe {

using ir::ValueId;

namespace {

constexpr std::int64_t few_rows = 64;  // below this, the columns are enough to run in parallel

class ColumnJoiner {
 public:
  ColumnJoiner(FusionPlan& plan, const ir::Graph& graph, const NodeReads& reads, std::int64_t most_columns)
      : plan_(plan),
        graph_(graph),
        reads_(reads),
        most_columns_(most_columns),
        region_graph_(graph, plan, no_attentions_, reads),
        sizes_(graph, plan, reads),
        readers_(graph.nodes.size(), [&](const auto& add) {
          for (const ValueId id : ir::all_values(graph))
            if (plan.region(id) >= 0)
              for (const Read& read : reads_of(id)) add(read.value.index, id);
        }) {}

  void run() {
    for (std::size_t c = 0; c < plan_.regions.size(); ++c)
      if (plan_.regions[c].kind() == RegionKind::columns) join(static_cast<int>(c));
    drop_empty_regions(plan_);
  }

 private:
  Region& region(int r) { return plan_.regions[r]; }
  const std::vector<Read>& reads_of(ValueId id) const { return reads_[id]; }

  void join(int c) {
    const ValueId sum = region(c).members[0];
    const int inner = column_dims(graph_, sum, most_columns_);
    if (inner == 0) return;
    for (const int p : candidates(sum)) {
      Region& rows = region(p);
      auto* form = std::get_if<RowsRegion>(&rows.form);
      const bool fits = form && rows.domain == region(c).domain && (form->inner == inner || form->inner == 0);
      if (!fits || !shares_points(p, sum) || !sizes_.takes(p, sum) || waits(p, c)) continue;
      form->inner = inner;
      rows.members.push_back(sum);
      std::sort(rows.members.begin(), rows.members.end());
      plan_.region_of[sum] = p;
      sizes_.note(sum);
      region(c).members.clear();
      region_graph_.note({&sum, 1}, p);
      return;
    }
  }

  /// Returns the regions that compute or read an operand of the sum, the last first.
  std::set<int, std::greater<>> candidates(ValueId sum) const {
    std::set<int, std::greater<>> found;
    for (const Read& read : reads_of(sum)) {
      found.insert(plan_.region(read.value));
      for (const ValueId reader : readers_[read.value.index]) found.insert(plan_.region(reader));
    }
    found.erase(-1);
    found.erase(plan_.region(sum));
    return found;
  }

  /// Whether the sum reads the values of region p at the point where p computes them, and at least one value over the
  /// whole domain that p computes or reads at the same point.
  bool shares_points(int p, ValueId sum) const {
    bool shares = false;
    for (const Read& read : reads_of(sum)) {
      const std::vector<int> here = points(read, plan_.space_dims(sum));
      if (plan_.region(read.value) == p) {
        // Sums of the region over its rows are complete only after its pass.
        const ir::Node& made = graph_[read.value];
        const bool after = made.op->as<ir::Reduce>() && !folds_trailing_dims(graph_, made);
        if (after || here != plan_.member_dims(read.value)) return false;
        shares = shares || whole(p, here);
        continue;
      }
      for (const ValueId reader : readers_[read.value.index]) {
        if (plan_.region(reader) != p || !whole(p, here)) continue;
        for (const Read& other : reads_of(reader))
          shares = shares || (other.value == read.value && points(other, plan_.space_dims(reader)) == here);
      }
    }
    return shares;
  }

  /// Returns the domain dim at which each dim of a value is read; -1 if its size is 1, -2 if it is read elsewhere.
  std::vector<int> points(const Read& read, const std::vector<int>& reader) const {
    const Shape& shape = graph_[read.value].type.shape;
    std::vector<int> dims;
    for (int j = 0; j < shape.rank(); ++j) {
      const bool known = read.affine && static_cast<std::size_t>(j) < read.index.size();
      const AffineComponent at = known ? read.index[j] : AffineComponent{};
      const bool direct = known && at.is_plain();
      dims.push_back(shape[j].is(1) ? -1 : direct ? reader[at.dim] : -2);
    }
    return dims;
  }

  bool whole(int p, const std::vector<int>& dims) const {
    const Shape& domain = plan_.regions[p].domain;
    for (int d = 0; d < domain.rank(); ++d)
      if (!domain[d].is(1) && std::find(dims.begin(), dims.end(), d) == dims.end()) return false;
    return true;
  }

  /// Whether one of the two must run before the other, apart from values that they pass directly.
  bool waits(int p, int c) const {
    if (region_graph_.depends_on({p}, c)) return true;
    std::vector<int> others;
    for (const Read& read : reads_of(plan_.regions[c].members[0]))
      if (const int other = plan_.region(read.value); other >= 0 && other != p) others.push_back(other);
    return region_graph_.depends_on(others, p);
  }

  FusionPlan& plan_;
  const ir::Graph& graph_;
  const NodeReads& reads_;
  std::int64_t most_columns_;
  AttentionRegions no_attentions_;  // their outputs are not regions of their own any more
  RegionGraph region_graph_;
  RegionSizes sizes_;
  JaggedList<ValueId> readers_;  // by node
};

}  // namespace

int column_dims(const ir::Graph& graph, ValueId sum, std::int64_t most_columns) {
  const Shape& domain = graph[graph[sum].operands[0]].type.shape;
  const std::vector<int> folded = reduced_dims(graph, graph[sum]);
  const auto is_folded = [&](int d) { return std::find(folded.begin(), folded.end(), d) != folded.end(); };
  int first = domain.rank();
  std::int64_t columns = 1;
  while (first > 0 && !is_folded(first - 1)) {
    const auto size = domain[--first].value();
    if (!size) return 0;
    columns *= *size;
  }
  Dim rows(1);
  for (int d = 0; d < first; ++d) {
    if (!domain[d].is(1) && !is_folded(d)) return 0;
    rows = rows * domain[d].unnamed();
  }
  const bool few = rows.value() && *rows.value() < few_rows;
  return columns < 2 || columns > most_columns || few ? 0 : domain.rank() - first;
}

void join_columns(FusionPlan& plan, const ir::Graph& graph, const NodeReads& reads, std::int64_t most_columns) {
  ColumnJoiner(plan, graph, reads, most_columns).run();
}

}  // namespace lathe
