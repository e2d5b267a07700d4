#pragma once

#include <memory>
#include <optional>

#include "passes/gpu/attention/attention_plan.h"
#include "passes/gpu/attention/block/attention_scores.h"
#include "passes/gpu/attention/block/attention_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

/// A block of threads at work on tiles of scores: the code that blocks of rows and blocks of columns share.
class AttentionBlock {
 public:
  using Scope = ElementwiseEmitter::Scope;
  using Scopes = std::vector<std::unique_ptr<Scope>>;  ///< by row of the thread

  /// With the products that sum over rows, those that sum over columns, or none. `stores`: of the elementwise
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

  /// Declares the buffers; `written` and `read` are of the plan. Emits what depends on no index.
  void begin(const std::vector<std::pair<int, DType>>& written, const std::vector<std::pair<int, DType>>& read);
  /// How many blocks share the depth of the products' results.
  kernel::Value depth_blocks();
  /// The threads of a block, its shared memory allocated.
  void threads(kernel::Value depth_block, const std::function<void(const AttentionThread&)>& body);

  /// The thread's rows from `first` of all on, the last one again beyond the end. Their masks tell which exist.
  Scopes rows(kernel::Value outer, kernel::Value first, const AttentionThread& thread);
  /// Says which scores and products points() and add() will be asked for in the tile `here`, in this order; `next` as
  /// for AttentionSteps.
  void start(const std::vector<int>& wanted, const std::vector<AttentionSums*>& added, const ScorePosition& here,
             std::optional<AttentionSteps::Next> next, const AttentionThread& thread);
  /// The thread's points in a tile, with these scores bound.
  Scopes points(Scopes& of_rows, const ScorePosition& tile, const std::vector<int>& wanted,
                const AttentionThread& thread);
  /// Which lanes of a point are rows and columns that exist; empty: all.
  kernel::Value exists(const Scope& row, const Scope& point);
  /// Which of the thread's columns from this one on exist; empty: all.
  kernel::Value columns_inside(kernel::Value column);
  /// Adds these points to the product's sums.
  void add(AttentionSums& sum, Scopes& of_rows, Scopes& of_points, const AttentionThread& thread);
  /// Multiplies or divides what some products have summed by a value of each row, `values` being those of the
  /// thread's rows. All threads of the block call it.
  void scale(const std::vector<AttentionSums*>& scaled, ScalarOp op, const std::vector<kernel::Value>& values,
             const AttentionThread& thread);
  /// Combines a value a thread over the threads of a row; all threads of the block call it. Inside a warp where one
  /// loop reduces for every tile; elsewhere, once a loop, in shared memory, which takes fewer registers.
  kernel::Value reduce_row(ScalarOp op, kernel::Value value, const AttentionThread& thread);
  /// Whether a condition holds for all threads of the block, which call it.
  kernel::Value all(kernel::Value condition, const AttentionThread& thread);

  kernel::Value row_count, column_count;

 private:
  std::vector<IndexGroup> row_groups(kernel::Value outer, kernel::Value row) const;
  bool whole(const Dim& positions) const;
  /// Combines a value a thread over `width` threads in shared memory.
  kernel::Value reduce(ScalarOp op, kernel::Value value, kernel::Value slot, kernel::Value index, int width);

  const AttentionPlan& plan_;
  AttentionTile tile_;
  Scope top_;
  std::vector<DType> reduced_;  ///< dtypes of the tree's memory
  std::optional<SharedTree> tree_;
  kernel::Buffer of_rows_;  ///< a value of each row on its way to other threads
};

}  // namespace lathe::gpu
