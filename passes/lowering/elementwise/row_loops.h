#pragma once

#include <cstdint>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// By instruction: the first loop over a row that can compute it. This is one more than the number of successive
/// reductions that it depends on.
std::vector<int> loop_levels(const ElementwiseProgram& program);

/// One loop over a row. Loop l can use the reductions of loops 0 .. l-1.
struct RowLoop {
  /// A value that a later loop reloads from `spill` instead of recomputing it.
  struct Spilled {
    int value;
    const ElementwiseStore* spill;
  };
  std::vector<int> reductions;                  ///< reductions that complete in this loop
  std::vector<int> columns;                     ///< reductions over the rows that this loop accumulates into
  std::vector<const ElementwiseStore*> stores;  ///< stores of values that vary along the row
  std::vector<Spilled> spilled;
};

/// Splits an elementwise program into the loops over a row that its reductions need. A softmax needs three: the
/// maximum, the sum of exponentials, and the quotients. Expensive values that a later loop needs again, such as the
/// exponentials, are spilled to the storage of a result of the same dtype. The loops in between must not use that
/// storage, and no later loop may read it, not even as an input that the result overwrites in place.
class RowLoops {
 public:
  /// `inner` has one bit per domain dim that the row runs along. `lowering` and `program` must outlive this object.
  RowLoops(const LoweringContext& lowering, const ElementwiseProgram& program, std::uint64_t inner);

  const std::vector<RowLoop>& loops() const { return loops_; }
  /// The first loop that can compute the value.
  int level(int instruction) const { return levels_[instruction]; }
  /// Whether the value, or the target of the store, varies along the row.
  bool varies(int instruction) const;
  bool varies(const ElementwiseStore& store) const;

 private:
  void spill();
  std::vector<bool> needed_in(int loop, int kept = -1) const;
  bool read_after(const ElementwiseStore& spill, int kept) const;
  const ElementwiseStore* find_spill(int value, int last_use, std::vector<int>& occupied) const;

  const LoweringContext& lowering_;
  const ElementwiseProgram& program_;
  std::uint64_t inner_;
  std::vector<int> levels_;
  std::vector<RowLoop> loops_;
};

}  // namespace lathe
