#pragma once

#include <span>
#include <vector>

#include "ir/support/containers/jagged_list.h"
#include "passes/fusion/attention/attention_regions.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/order/online_order.h"
#include "passes/fusion/path_tree.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Which regions of a plan under construction read which. Every change must be recorded here. Its units are those of
/// AttentionRegions.
class RegionGraph {
 public:
  /// The arguments must outlive this object; `reads` does not change.
  RegionGraph(const ir::Graph& graph, const FusionPlan& plan, const AttentionRegions& attentions,
              const NodeReads& reads);
  RegionGraph(const RegionGraph&) = delete;
  RegionGraph& operator=(const RegionGraph&) = delete;

  /// Records that nodes have become members of a region, which may be a new one or another one than before.
  void note(std::span<const ir::ValueId> members, int region);

  /// Whether one of the regions `from` is in the unit of `target`, or reads it directly or through others.
  bool depends_on(const std::vector<int>& from, int target) const;

  /// Interface for OnlineOrder: the units that a unit reads, and those that read it.
  template <class F>
  void predecessors(int unit, F&& f) const {
    for_members(unit, [&](ir::ValueId member) { read_units(member, f); });
  }
  template <class F>
  void successors(int unit, F&& f) const {
    for_members(unit, [&](ir::ValueId member) { reader_units(member, f); });
  }
  std::size_t predecessor_count(int unit) const {
    return count_of(unit, [this](ir::ValueId member) { return reads_[member].size(); });
  }
  std::size_t successor_count(int unit) const {
    return count_of(unit, [this](ir::ValueId member) { return readers_[member.index].size(); });
  }

 private:
  int unit(ir::ValueId id) const { return unit_[id]; }
  const Region& region(int r) const { return plan_.regions[r]; }

  template <class F>
  void for_members(int unit, F&& f) const {
    for (const ir::ValueId member : region(unit).members) f(member);
    for (const int output : attentions_.outputs_of(unit))
      for (const ir::ValueId member : region(output).members) f(member);
  }
  template <class F>
  void read_units(ir::ValueId reader, F&& f) const {
    for (const Read& read : reads_[reader])
      if (const int from = unit(read.value); from >= 0 && from != unit(reader)) f(from);
  }
  template <class F>
  void reader_units(ir::ValueId value, F&& f) const {
    for (const ir::ValueId reader : readers_[value.index])
      if (const int to = unit(reader); to >= 0 && to != unit(value)) f(to);
  }
  template <class Count>
  std::size_t count_of(int unit, const Count& count_at) const {
    std::size_t count = 0;
    for_members(unit, [&](ir::ValueId member) { count += count_at(member); });
    return count;
  }
  std::vector<int> sorted_units() const;

  const FusionPlan& plan_;
  const AttentionRegions& attentions_;
  const NodeReads& reads_;
  JaggedList<ir::ValueId> readers_;  // by node
  PathTree paths_;                   // of reads
  ir::NodeMap<int> unit_;            // -1: none yet
  OnlineOrder<RegionGraph> order_;   // of units
};

}  // namespace lathe
