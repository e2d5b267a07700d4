#pragma once

#include <functional>
#include <span>
#include <vector>

#include "passes/cpu/cpu_context.h"

namespace lathe::cpu {

/// Reductions over the rows of a rows region. The rows are split into chunks, and each chunk adds its rows in order
/// to its own row of partial results. A second kernel adds the chunks in order. The chunks depend on the number of
/// rows and the CPU, so results are the same for any number of threads. Long f32 sums are computed in blocks of rows
/// (block_sums.h): after each block, a chunk's partial results are added to its row of totals.
class PartialColumns {
 public:
  /// Removes the stores of column reductions from the program and allocates a workspace for each reduction.
  PartialColumns(const CpuContext& lowering, ElementwiseProgram& program, std::vector<int> outer,
                 std::vector<int> inner);

  bool any() const { return !sums_.empty(); }
  /// Declares the partial results in the kernel that runs over the rows.
  void declare(KernelContext& context) const;
  /// Emits the code of rows [first, first + count).
  using Rows = std::function<void(kernel::Value first, int count)>;
  /// Calls `rows` for all rows, `at_once` at a time or one; one iteration of the parallel loop processes a chunk.
  void run_rows(KernelContext& context, int lanes, int at_once, const Rows& rows);
  /// Adds the values of consecutive rows at `lanes` columns from `column` on to the partial result of an instruction,
  /// inside run_rows.
  void add(KernelContext& context, int instruction, std::span<const kernel::Value> values, kernel::Value column,
           kernel::Value mask);
  /// Minimum rows per iteration. The work estimate of a launch assumes this many.
  static constexpr std::int64_t least_rows = 8;

  /// Returns the kernel that adds the chunks and stores the results.
  KernelContext::Built finish(int lanes) const;

 private:
  struct Sum {
    ElementwiseStore store;
    int partial;     ///< program buffer [chunks, columns]
    int total = -1;  ///< the same for totals of sums in blocks; -1: none
  };
  struct Chunks {
    kernel::Value rows, each, count;
  };
  /// Maximum number of chunks: some for each core.
  std::int64_t most_chunks() const { return std::int64_t{4} * lowering_.cpu.cores; }
  Chunks chunks(KernelContext& context) const;
  const ElementwiseInstruction& instruction(const Sum& sum) const { return program_[sum.store.value]; }
  /// Adds a chunk's partial results to its totals and clears them.
  void end_block(KernelContext& context, kernel::Value columns, int lanes) const;

  const CpuContext& lowering_;
  const ElementwiseProgram& program_;
  std::vector<int> outer_, inner_;
  std::vector<Sum> sums_;
  kernel::Value start_;  ///< of the current chunk's row of partial results
};

}  // namespace lathe::cpu
