#pragma once

#include <map>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe::cpu {

/// The reductions over the rows of a rows region. The rows are cut into chunks, by their number alone; each chunk has
/// its own row of partial results, which its rows are added to in order, and a second kernel adds the chunks in
/// order. So results are the same for any number of threads. Long sums of f32 are made in blocks of rows
/// (block_sums.h): after each, a chunk's partial results join its row of totals.
class PartialColumns {
 public:
  /// Takes the stores of such results out of the program, and makes a workspace for each.
  PartialColumns(const LoweringContext& lowering, ElementwiseProgram& program, std::vector<int> outer,
                 std::vector<int> inner);

  bool any() const { return !sums_.empty(); }
  /// Declares the partial results in the kernel that runs over the rows.
  void declare(KernelContext& context) const;
  /// Calls `row` for every row, a chunk of them in one iteration of the parallel loop.
  void run_rows(KernelContext& context, int lanes, const std::function<void(kernel::Value row)>& row);
  /// Adds the value at `lanes` columns from `column` on to the partial result of an instruction, in the iteration
  /// of run_rows.
  void add(KernelContext& context, int instruction, kernel::Value value, kernel::Value column, kernel::Value mask);
  /// A launch does about as much as this many rows in one iteration.
  static constexpr std::int64_t least_rows = 8;

  /// The kernel that adds the chunks and stores the results.
  KernelContext::Built finish(int lanes) const;

 private:
  struct Sum {
    ElementwiseStore store;
    int partial;     ///< program buffer [chunks, columns]
    int total = -1;  ///< the same, of sums in blocks
  };
  struct Chunks {
    kernel::Value rows, each, count;
  };
  /// Of the rows: some for each core.
  std::int64_t most_chunks() const { return std::int64_t{4} * lowering_.cpu().cores; }
  Chunks chunks(KernelContext& context) const;
  const ElementwiseInstruction& instruction(const Sum& sum) const { return program_[sum.store.value]; }
  /// Adds a chunk's partial results to its totals, and clears them.
  void end_block(KernelContext& context, kernel::Value columns, int lanes) const;

  const LoweringContext& lowering_;
  const ElementwiseProgram& program_;
  std::vector<int> outer_, inner_;
  std::vector<Sum> sums_;
  kernel::Value start_;  ///< of the chunk's row of partial results
};

}  // namespace lathe::cpu
