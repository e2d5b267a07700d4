#pragma once

#include <memory>

#include "passes/gpu/group_columns.h"
#include "passes/gpu/group_places.h"
#include "passes/lowering/point_emitter.h"

namespace lathe::gpu {

/// What the threads of warp groups make of the transposed scores of a tile, which lie where wgmma leaves them: a
/// thread has two columns of the attention, and of each 8 rows two neighbours. What it needs of these rows it loads
/// before their scores are waited for.
class GroupPoints : private GroupPlaces {
 public:
  using Scope = PointEmitter::Scope;

  /// Of so many rows at once.
  GroupPoints(const AttentionPlan& plan, KernelContext& context, PointEmitter& emitter,
              const GroupColumnsParts& parts, int rows);

  /// Declares the scores of a tile, in the ring.
  void declare();
  const std::vector<kernel::Var>& scores() const { return scores_; }  ///< by product
  /// What does not vary along the rows, for the thread's columns of those from `column` on; the last one again beyond
  /// the end.
  void enter(kernel::Value outer, kernel::Value column, kernel::Value thread, const Scope* top);
  /// Zeros for the scores, and what is needed of the rows from `row` on.
  void begin(kernel::Value row);
  /// Makes the weights of all products of the scores.
  void make_weights(kernel::Value row);
  /// By end: a left operand of group_mma.
  kernel::Value weights(std::size_t end) const;

 private:
  void find_kept();
  bool costs(int value) const;
  bool depends_on(int value, int dim) const;
  kernel::Value inside(kernel::Value row);
  Scope rows_scope(kernel::Value row, kernel::Value mask);
  /// body(the first of the thread's two rows, i) for every 8 rows.
  void each_pair(kernel::Value row, const std::function<void(kernel::Value row, kernel::Value i)>& body);

  const AttentionPlan& plan_;
  KernelContext& context_;
  kernel::Builder& b_;
  PointEmitter& emitter_;
  const GroupColumnsParts& parts_;
  int rows_;
  std::vector<int> of_rows_, fixed_, of_columns_;  ///< kept of rows; what is made of these; kept of columns
  kernel::Value outer_, thread_;
  std::unique_ptr<Scope> outer_scope_;
  std::vector<std::unique_ptr<Scope>> column_scopes_;
  std::vector<kernel::Value> columns_;
  std::vector<kernel::Var> scores_;
  std::vector<kernel::Buffer> kept_, weights_;
};

}  // namespace lathe::gpu
