#pragma once

#include <cstdint>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

/// The size of a region, which is limited. A region is compiled as one function, and compilers need more than twice
/// the time and memory for a function twice as long, without gains beyond some length. A loop over a row recomputes
/// values that earlier loops did not store, so a large number of loops costs more than the memory traffic it saves.
namespace lathe {

struct RegionSize {
  std::int64_t arithmetic = 0;  ///< per point, with nodes that members compute in place: see arithmetic_cost()
  int loops = 1;                ///< over a row, in sequence; each may compute all of it
  int inputs = 0;               ///< reads of values of other regions, counted when their readers joined

  /// Returns a measure of the kernel's length.
  std::int64_t code() const { return arithmetic * loops; }
  bool is_allowed() const;
};

inline constexpr std::int64_t most_code = 4096;
inline constexpr int most_row_loops = 8;
/// A loop over more tensors at a time exceeds the available registers and gains nothing.
inline constexpr int most_region_inputs = 128;
/// Regions that grew separately are merged up to this limit.
inline constexpr std::size_t most_merged_members = 256;
/// The code of an attention contains its scores, and the nodes that follow, in about this many places: once in each
/// pass over the columns, for tiles and for remainders. A matmul has this much arithmetic.
inline constexpr int attention_copies = 8, product_arithmetic = 16;

/// Returns the arithmetic of computing each value, with its own inputs, where it is read; 0 for values in memory.
ir::NodeMap<std::int64_t> arithmetic_in_place(const ir::Graph& graph, const ir::NodeMap<bool>& inlined);

/// The sizes of a plan's regions of rows, matmuls and outer reductions, while they grow.
class RegionSizes {
 public:
  /// All arguments must outlive this object. Includes the members that the plan has so far.
  RegionSizes(const ir::Graph& graph, const FusionPlan& plan, const NodeReads& reads);

  /// Whether a region may take one more member.
  bool takes(int region, ir::ValueId id) const;
  /// Whether it may take all members of another one that reads it.
  bool takes_all(int region, int reader) const;
  /// Records that a node has become the last member of its region.
  void note(ir::ValueId id);
  /// Records that a region has taken all members of another one.
  void note_all(int region, int reader);

 private:
  using Loops = std::vector<std::pair<ir::ValueId, int>>;

  std::int64_t arithmetic(ir::ValueId id) const;
  int inputs(int region, ir::ValueId id) const;
  int loop_after(ir::ValueId id, int loop) const;
  int loop_in(int region, ir::ValueId id) const;
  Loops loops_joined(int region, int reader) const;
  RegionSize joined(int region, int reader, const Loops& loops) const;
  RegionSize& size(int region);
  RegionSize size(int region) const;

  const ir::Graph& graph_;
  const FusionPlan& plan_;
  const NodeReads& reads_;
  ir::NodeMap<std::int64_t> in_place_;  // the arithmetic that its readers have for it and its inputs
  ir::NodeMap<int> loop_;               // by member: the first loop over the row that can compute it
  std::vector<RegionSize> sizes_;       // by region
};

}  // namespace lathe
