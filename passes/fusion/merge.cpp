#include "passes/fusion/merge.h"

#include <algorithm>
#include <utility>

#include "passes/fusion/regions/gathered_reads.h"
#include "passes/fusion/regions/region_graph.h"
#include "passes/fusion/regions/region_size.h"

namespace lathe {

using ir::ValueId;

namespace {

class Merger {
 public:
  Merger(FusionPlan& plan, AttentionRegions& attentions, const ir::Graph& graph, const NodeReads& reads,
         const FusionOptions& options)
      : plan_(plan),
        attentions_(attentions),
        reads_(reads),
        region_graph_(graph, plan, attentions, reads),
        sizes_(graph, plan, reads),
        gathers_(graph, plan, reads, options.most_gathers),
        recomputed_(options.recomputed) {}

  void run() {
    // A merged region may reach another one that neither of them reached before.
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t c = 0; c < plan_.regions.size(); ++c) changed = absorb(static_cast<int>(c)) || changed;
    }
    attentions_.drop_empty_regions(plan_);
  }

 private:
  Region& region(int r) { return plan_.regions[r]; }
  const std::vector<Read>& reads(ValueId id) const { return reads_[id]; }

  /// Moves region c into one of the regions that it reads.
  bool absorb(int c) {
    if (region(c).members.empty() || region(c).kind() != RegionKind::rows) return false;
    std::vector<int> sources;
    for (const ValueId member : region(c).members)
      for (const Read& read : reads(member)) sources.push_back(plan_.region(read.value));
    std::sort(sources.rbegin(), sources.rend());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    for (const int p : sources)
      if (p >= 0 && p != c && compatible(p, c) && aligned(p, c) && sizes_.takes_all(p, c) &&
          gathers_.allow_all(p, c) && !reaches_around(p, c)) {
        join(p, c);
        return true;
      }
    return false;
  }

  bool compatible(int p, int c) {
    const Region &from = region(p), &to = region(c);
    if (!may_come_as_early(recomputed_, to.members, from.members)) return false;
    if (from.members.size() + to.members.size() > most_merged_members || from.domain != to.domain) return false;
    const int inner = to.rows().inner;
    if (from.kind() == RegionKind::product) return inner == 0 && from.domain.rank() > 0;
    if (from.kind() != RegionKind::rows) return false;
    return from.rows().inner == inner || from.rows().inner == 0 || inner == 0;
  }

  /// Whether every member of c reads members of p at its own point of the domain.
  bool aligned(int p, int c) {
    for (const ValueId member : region(c).members)
      for (const Read& read : reads(member)) {
        if (plan_.region(read.value) != p) continue;
        if (!read.affine || !same_point(read, plan_.space_dims(member), plan_.member_dims(read.value))) return false;
      }
    return true;
  }

  static bool same_point(const Read& read, const std::vector<int>& reader, const std::vector<int>& source) {
    for (std::size_t j = 0; j < source.size(); ++j) {
      if (source[j] < 0) continue;
      const AffineComponent& at = read.index[j];
      if (!at.is_plain() || reader[at.dim] != source[j]) return false;
    }
    return true;
  }

  /// Whether c depends on p through a third region.
  bool reaches_around(int p, int c) {
    std::vector<int> others;
    for (const ValueId member : region(c).members)
      for (const Read& read : reads(member))
        if (const int other = plan_.region(read.value); other >= 0 && other != p && other != c)
          others.push_back(other);
    return region_graph_.depends_on(others, p);
  }

  void join(int p, int c) {
    Region &into = region(p), &from = region(c);
    sizes_.note_all(p, c);
    for (const ValueId member : from.members) plan_.region_of[member] = p;
    const std::vector<ValueId> moved = std::exchange(from.members, {});
    into.members.insert(into.members.end(), moved.begin(), moved.end());
    region_graph_.note(moved, p);
    // A contraction stays first; the others are in graph order.
    std::sort(into.members.begin() + (into.kind() == RegionKind::product ? 1 : 0), into.members.end());
    if (auto* rows = std::get_if<RowsRegion>(&into.form)) rows->inner = std::max(rows->inner, from.rows().inner);
  }

  FusionPlan& plan_;
  AttentionRegions& attentions_;
  const NodeReads& reads_;
  RegionGraph region_graph_;
  RegionSizes sizes_;
  GatheredReads gathers_;
  const ir::NodeMap<bool>& recomputed_;
};

}  // namespace

void merge_regions(FusionPlan& plan, AttentionRegions& attentions, const ir::Graph& graph, const NodeReads& reads,
                   const FusionOptions& options) {
  Merger(plan, attentions, graph, reads, options).run();
}

bool may_come_as_early(const ir::NodeMap<bool>& recomputed, const std::vector<ValueId>& members,
                       const std::vector<ValueId>& region) {
  if (recomputed.empty()) return true;
  const auto late = [&](ValueId id) { return bool(recomputed[id]); };
  return std::none_of(members.begin(), members.end(), late) || std::any_of(region.begin(), region.end(), late);
}

}  // namespace lathe
