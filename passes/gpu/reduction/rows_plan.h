#pragma once

#include <map>
#include <vector>

#include "passes/gpu/gpu_context.h"
#include "passes/gpu/reduction/long_reduction.h"
#include "passes/lowering/elementwise/row_space.h"
#include "passes/lowering/elementwise/saved_values.h"

namespace lathe::gpu {

/// How a rows region with reductions is distributed: `threads` per row, `rows` per block, one kernel. If rows are few
/// and long, each is cut into splits, one block each. Each loop over the row is then a separate kernel, which first
/// combines the results of the splits of earlier loops. A last one, one block per row, stores the results that do not
/// vary along the row.
struct RowsPlan {
  RowsPlan(const GpuContext& lowering, const Region& region);
  RowsPlan(const RowsPlan&) = delete;
  RowsPlan& operator=(const RowsPlan&) = delete;

  const ElementwiseProgram program;
  const RowSpace space;
  const RowLoops loops;
  int threads = 1, rows = 1;
  int splits = 1;               ///< maximum per row
  std::map<int, int> partials;  ///< with splits, by reduction: the program buffer [row][split]
  /// By loop: the loads of long rows that it and another loop use. Between loops, a block keeps them in shared
  /// memory, where each thread reads only what it stored, so that they are read from memory once.
  std::vector<std::vector<int>> kept;

  /// A kernel: loops first .. last - 1, and optionally the values that do not vary along the row.
  struct Step {
    int first, last;
    bool singles;
  };
  std::vector<Step> steps;
  bool is_cut() const { return splits > 1; }
  /// Returns the step's part of the program. Instructions that it does not need become constants; it has the stores
  /// that the step writes or reads back.
  ElementwiseProgram part(const Step& step) const;
  /// Returns the reductions of an earlier loop that a part of the program needs.
  std::vector<int> combined(const ElementwiseProgram& part, int loop) const;

 private:
  void choose_threads(const GpuInfo& gpu);
  void choose_splits(const GpuContext& lowering);
  void choose_kept(const GpuContext& lowering);
  std::vector<int> loads_of(int loop) const;
  std::vector<Step> separate_steps() const;
  bool has_singles() const;
};

}  // namespace lathe::gpu
