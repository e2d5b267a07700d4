#pragma once

#include <map>
#include <vector>

#include "passes/gpu/reduction/long_reduction.h"
#include "passes/lowering/elementwise/row_space.h"
#include "passes/lowering/elementwise/saved_values.h"

namespace lathe::gpu {

/// How a region of rows with reductions is shared out: `threads` a row, `rows` of them a block, one kernel. Where
/// rows are few and long each is cut into splits, a block each, and each loop over the row is a kernel of its own
/// that first combines what the splits of earlier loops reduced to; a last one, a block a row, stores what rows
/// reduce to.
struct RowsPlan {
  RowsPlan(const LoweringContext& lowering, const Region& region);
  RowsPlan(const RowsPlan&) = delete;
  RowsPlan& operator=(const RowsPlan&) = delete;

  const ElementwiseProgram program;
  const RowSpace space;
  const RowLoops loops;
  int threads = 1, rows = 1;
  int splits = 1;               ///< of a row, at most
  std::map<int, int> partials;  ///< where it is cut, by reduction: the program buffer [row][split]

  /// A kernel: loops first .. last - 1, and then maybe what does not vary along the row.
  struct Step {
    int first, last;
    bool singles;
  };
  std::vector<Step> steps;
  bool is_cut() const { return splits > 1; }
  /// The step's part of the program: instructions that it does not need are constants, and it has the stores that the
  /// step writes, or reads back.
  ElementwiseProgram part(const Step& step) const;
  /// The reductions of an earlier loop that a part of the program needs.
  std::vector<int> combined(const ElementwiseProgram& part, int loop) const;

 private:
  void choose_threads(const GpuInfo& gpu);
  void choose_splits(const LoweringContext& lowering);
  std::vector<Step> separate_steps() const;
  bool has_singles() const;
};

}  // namespace lathe::gpu
