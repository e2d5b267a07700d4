#pragma once

#include <cstdint>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe {

/// By instruction: the first loop over a row that can compute it, which is one more than the reductions that it needs
/// one after the other.
std::vector<int> loop_levels(const ElementwiseProgram& program);

/// One loop over a row. Loop l computes what needs the reductions of loops 0 .. l-1.
struct RowLoop {
  /// A value that a later loop reads back from `spill` instead of computing it again.
  struct Spilled {
    int value;
    const ElementwiseStore* spill;
  };
  std::vector<int> reductions;                  ///< instructions that it finishes
  std::vector<int> columns;                     ///< reductions over the rows that it adds to
  std::vector<const ElementwiseStore*> stores;  ///< results along the row that it writes
  std::vector<Spilled> spilled;
};

/// How many loops over a row the reductions of an elementwise program ask for, and what each does: a softmax has
/// three (the maximum; the sum of exponentials; the quotients). Costly values that a later loop needs again (such as
/// those exponentials) are spilled in the storage of a result of the same dtype that the loops between leave alone
/// and that no later loop reads: not even where the result goes over a value that the program starts from.
class RowLoops {
 public:
  /// `inner` has a bit for each domain dim that the row runs along. `lowering` and `program` outlive this.
  RowLoops(const LoweringContext& lowering, const ElementwiseProgram& program, std::uint64_t inner);

  const std::vector<RowLoop>& loops() const { return loops_; }
  /// Which loop can compute the value first.
  int level(int instruction) const { return levels_[static_cast<std::size_t>(instruction)]; }
  /// Whether the value, or the spill of the store, is another from element to element of the row.
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
