#pragma once

#include <cstdint>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

/// How large a region may become. A region is compiled as one function, and compilers take more than twice the time
/// and the memory for a function twice as long; beyond some length they gain nothing for it. A loop over a row
/// computes again what the loops before it did not store, so that many loops cost more than the memory they save.
namespace lathe {

struct RegionSize {
  std::int64_t arithmetic = 0;  ///< of one point, what members compute in place too: see arithmetic_cost()
  int loops = 1;                ///< one after the other over a row, each of which may compute all of it
  int inputs = 0;               ///< reads of values that other regions compute, as their readers joined

  /// A measure of the kernel's length.
  std::int64_t code() const { return arithmetic * loops; }
  bool is_allowed() const;
};

inline constexpr std::int64_t most_code = 4096;
inline constexpr int most_row_loops = 8;
/// A loop that goes through more tensors side by side holds more in registers than there are, and gains nothing.
inline constexpr int most_region_inputs = 128;
/// Regions that grew apart join as far as this goes.
inline constexpr std::size_t most_merged_members = 256;
/// The code of an attention has its scores, and what becomes of them, in about so many places: in each pass over the
/// columns, and there for tiles and for what is left beside them. A product counts as so much arithmetic.
inline constexpr int attention_copies = 8, product_arithmetic = 16;

/// By node: the arithmetic of computing it, and what it is made of, where it is read; 0 for what lies in memory.
std::vector<std::int64_t> arithmetic_in_place(const ir::Graph& graph, const std::vector<bool>& inlined);

/// The sizes of the regions of a plan that are made of rows, of products and of outer reductions, while they grow.
class RegionSizes {
 public:
  /// All arguments outlive this; `reads` is by node. Knows the members that the plan has so far.
  RegionSizes(const ir::Graph& graph, const FusionPlan& plan, const std::vector<std::vector<Read>>& reads);

  /// Whether a region may take one more member.
  bool takes(int region, ir::ValueId id) const;
  /// Whether it may take all members of another one that reads it.
  bool takes_all(int region, int reader) const;
  /// Notes that a node has become the last member of its region.
  void note(ir::ValueId id);
  /// Notes that a region has taken all members of another one.
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
  const std::vector<std::vector<Read>>& reads_;
  std::vector<std::int64_t> in_place_;  // by node: arithmetic of who reads it, for it and what it is made of
  std::vector<int> loop_;               // by member: the first loop over the row that can compute it
  std::vector<RegionSize> sizes_;       // by region
};

}  // namespace lathe
