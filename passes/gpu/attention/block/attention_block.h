#pragma once

#include <memory>
#include <optional>

#include "passes/gpu/attention/attention_plan.h"
#include "passes/gpu/attention/block/attention_scores.h"
#include "passes/gpu/attention/block/attention_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

/// A thread block that processes tiles of scores: the code that blocks of rows and blocks of columns share.
class AttentionBlock {
 public:
  using Scope = ElementwiseEmitter::Scope;
  using Scopes = std::vector<std::unique_ptr<Scope>>;  ///< by row of the thread

  /// `which`: with the matmuls that sum over rows, those that sum over columns, or none. `stores`: of the elementwise
  /// program.
  AttentionBlock(const AttentionPlan& plan, std::optional<OutputProducts> which, std::vector<ElementwiseStore> stores,
                 std::string name, KernelRole role);

  KernelContext context;
  kernel::Builder& b;
  ElementwiseProgram program;
  ElementwiseEmitter emitter;
  AttentionSteps steps;
  AttentionScores scores;
  std::vector<std::unique_ptr<AttentionSums>> sums;

  /// Declares the buffers; `written` and `read` are buffers of the plan. Emits the code that depends on no index.
  void begin(const std::vector<std::pair<int, DType>>& written, const std::vector<std::pair<int, DType>>& read);
  /// Returns how many blocks share the depth of the matmuls' results.
  kernel::Value depth_blocks();
  /// Emits the threads of a block and allocates its shared memory.
  void threads(kernel::Value depth_block, const std::function<void(const AttentionThread&)>& body);

  /// Returns the thread's rows of the block that starts at row `first`; rows past the end repeat the last one. Their
  /// masks show which rows exist.
  Scopes rows(kernel::Value outer, kernel::Value first, const AttentionThread& thread);
  /// Announces the scores and matmuls that points() and add() will process in the tile `here`, in this order; `next`
  /// as in AttentionSteps.
  void start(const std::vector<int>& wanted, const std::vector<AttentionSums*>& added, const ScorePosition& here,
             std::optional<AttentionSteps::Next> next, const AttentionThread& thread);
  /// Returns the thread's points in a tile, with these scores bound.
  Scopes points(Scopes& of_rows, const ScorePosition& tile, const std::vector<int>& wanted,
                const AttentionThread& thread);
  /// Returns the mask of the lanes of a point whose row and column exist; empty: all.
  kernel::Value exists(const Scope& row, const Scope& point);
  /// Returns the mask of the thread's columns from this one on that exist; empty: all.
  kernel::Value columns_inside(kernel::Value column);
  /// Adds these points to the matmul's sums.
  void add(AttentionSums& sum, Scopes& of_rows, Scopes& of_points, const AttentionThread& thread);
  /// Multiplies or divides the sums of some matmuls by one value per row; `values` are those of the thread's rows.
  /// All threads of the block call it.
  void scale(const std::vector<AttentionSums*>& scaled, ScalarOp op, const std::vector<kernel::Value>& values,
             const AttentionThread& thread);
  /// Combines one value per thread over the threads of a row; all threads of the block call it. Works inside a warp
  /// if one loop reduces for every tile. Otherwise, once per loop, it uses shared memory, which needs fewer
  /// registers.
  kernel::Value reduce_row(ScalarOp op, kernel::Value value, const AttentionThread& thread);
  /// Returns whether a condition holds for all threads of the block, all of which call it.
  kernel::Value all(kernel::Value condition, const AttentionThread& thread);

  kernel::Value row_count, column_count;

 private:
  std::vector<IndexGroup> row_groups(kernel::Value outer, kernel::Value row) const;
  bool whole(const Dim& positions) const;
  /// Combines one value per thread over `width` threads in shared memory.
  kernel::Value reduce(ScalarOp op, kernel::Value value, kernel::Value slot, kernel::Value index, int width);

  const AttentionPlan& plan_;
  AttentionTile tile_;
  Scope top_;
  std::vector<DType> reduced_;  ///< dtypes of the tree's memory
  std::optional<SharedTree> tree_;
  kernel::Buffer of_rows_;  ///< one value per row, which other threads read
};

}  // namespace lathe::gpu
