#include "passes/gpu/group_columns.h"

#include <memory>

#include "passes/gpu/attention_known_rows.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/group_places.h"
#include "passes/gpu/group_points.h"
#include "passes/gpu/group_sums.h"

namespace lathe::gpu {

using kernel::Value;
using kernel::Var;
using Tile = GroupColumnsTile;

namespace {

class GroupColumns {
 public:
  GroupColumns(const AttentionPlan& plan, const Tile& tile)
      : plan_(plan),
        parts_(group_columns_parts(plan)),
        program_(plan.attention.program),
        tile_(tile),
        context_("attention_columns_by_groups"),
        b_(context_.builder),
        emitter_(context_, program_, plan.lowering.buffer_of),
        top_(emitter_, {}),
        points_(plan, context_, emitter_, parts_, tile.rows_at_once) {
    program_.stores.clear();
    for (const auto* score : parts_.scores)
      resting_.push_back(std::make_unique<RestingOperand>(context_, plan.lowering, score->columns, score->depth,
                                                          plan.tile, Tile::columns));
    for (const AttentionOperand* operand : parts_.passing)
      passing_.push_back(std::make_unique<PassingOperand>(context_, *operand, false, Tile::rows,
                                                          static_cast<int>(*operand->size.value())));
    for (const auto* end : parts_.ends) sums_.push_back(std::make_unique<GroupSums>(context_, plan.lowering, *end));
  }

  KernelContext::Built run() {
    declare();
    const AttentionProgram& attention = plan_.attention;
    const Value strips = b_.ceil_div(context_.dim(attention.column_count), Tile::columns);
    const auto block = [&](Value i) { this->block(i / strips, i % strips * Tile::columns); };
    b_.for_loop(0, context_.dim(attention.parts.parallel) * strips, 1, block, kernel::LoopKind::block_x);
    Dim depth(0);
    for (const auto* end : parts_.ends) depth = depth + end->depth;
    auto built = context_.finish();
    built.launch.flops = attention.flops(depth);
    return built;
  }

 private:
  struct Place {
    Value outer, column, thread;  ///< outer: of the parallel ones
  };

  void declare() {
    std::vector<const PointProgram*> programs = {&program_};
    for (const auto& operand : resting_) programs.push_back(&operand->program());
    for (const auto& operand : passing_) programs.push_back(&operand->program());
    for (const auto& sum : sums_) programs.push_back(&sum->part().epilogue);
    declare_buffers(context_, programs, plan_.lowering);
    for (const auto& [buffer, dtype] : buffers_of_known_rows(plan_)) context_.declare(buffer, dtype, true, false);
    emitter_.hoist(top_);
    for (const auto& operand : resting_) operand->hoist();
    for (const auto& sum : sums_) sum->hoist();
    for (const auto& operand : passing_) operand->map(plan_);
  }

  void block(Value outer, Value column) {
    for (const auto& operand : resting_) operand->allocate("columns");
    for (const auto& operand : passing_) operand->allocate(plan_.tile.held, tile_.stages, "rows");
    std::optional<SharedTree> tree;
    if (plan_.skips >= 0) tree.emplace(b_, std::vector<DType>{boolean}, Tile::users);
    const auto thread = [&](Value t) {
      const Place place{outer, column, t};
      const Value first = outer * context_.dim(plan_.attention.parts.serial),
                  count = context_.dim(plan_.attention.column_count);
      b_.if_(t < Tile::users, [&] {
        for (const auto& operand : resting_) operand->bring(first, column, count, t, Tile::users);
      });
      b_.ring(tile_.stages, Tile::users, [&] { rows(place, tree); });
    };
    b_.for_loop(0, Tile::threads, 1, thread, kernel::LoopKind::thread_x);
  }

  void rows(const Place& place, std::optional<SharedTree>& tree) {
    const AttentionParts& parts = plan_.attention.parts;
    const Value serial = context_.dim(parts.serial);
    const Rows range = tree ? rows_that_keep(place, *tree) : Rows{b_.index(0), context_.dim(plan_.attention.rows)};
    for (const auto& sum : sums_) sum->declare();
    points_.declare();
    b_.for_loop(0, serial, 1, [&](Value s) {
      const Value outer = place.outer * serial + s;
      points_.enter(outer, place.column, place.thread, &top_);
      b_.for_loop(range.lo, range.hi, Tile::rows, [&](Value row) {
        const auto fill = [&](Value slot) {
          for (const auto& operand : passing_) operand->fill(slot, outer, row);
        };
        b_.stage(fill, [&](Value slot) {
          for (int first = 0; first < Tile::rows; first += tile_.rows_at_once) some_rows(place, slot, row, first);
        });
      });
    });
    b_.wait_sums(registers());
    for (const auto& sum : sums_) sum->finish(place.outer, place.column, place.thread);
  }

  /// The rows of the tile from `first` on.
  void some_rows(const Place& place, Value slot, Value row, int first) {
    points_.begin(row + first);
    for (std::size_t s = 0; s < resting_.size(); ++s)
      multiply(b_, points_.scores()[s], *resting_[s], place.thread, passing(parts_.scores[s]->rows), slot, first);
    b_.wait_sums(registers());
    points_.make_weights(row + first);
    for (std::size_t e = 0; e < sums_.size(); ++e) {
      const PassingOperand& other = passing(parts_.ends[e]->other);
      sums_[e]->add(points_.weights(e), [&](int depth) { return other.right(slot, first, depth, true); });
    }
  }

  const PassingOperand& passing(const AttentionOperand& operand) const {
    return *passing_[parts_.passing_number(operand)];
  }
  std::vector<Var> registers() const {
    std::vector<Var> all = points_.scores();
    for (const auto& sum : sums_) all.insert(all.end(), sum->vars().begin(), sum->vars().end());
    return all;
  }

  struct Rows {
    Value lo, hi;
  };

  /// Tiles of rows that may keep some of the block's columns, where all other strips have left out theirs; else all.
  Rows rows_that_keep(const Place& place, SharedTree& tree) {
    const AttentionProgram& attention = plan_.attention;
    const ColumnBounds& bounds = attention.bounds;
    const Value count = context_.dim(attention.rows), strips = b_.ceil_div(count, Tile::rows),
                of_outer = context_.dim(plan_.strips_of(attention.rows)),
                serial = context_.dim(attention.parts.serial);
    Rows some{b_.index(0), count};
    if (bounds.upper) some.lo = max(place.column - context_.dim(*bounds.upper), 0) / Tile::rows * Tile::rows;
    if (bounds.lower) some.hi = max(min(place.column + Tile::columns - context_.dim(*bounds.lower), count), 0);
    const Var fine = b_.var(b_.constant_int(boolean, 1));
    b_.for_loop(0, serial, 1, [&](Value s) {
      const Value first = (place.outer * serial + s) * of_outer;
      b_.for_loop(place.thread, strips, Tile::users, [&](Value strip) {
        const Value row = strip * Tile::rows, outside = row < some.lo || row >= some.hi;
        const Value left_out = b_.load(context_.buffer(plan_.skips), first + strip, 1, outside);
        b_.set(fine, b_.get(fine) && (left_out || kernel::logical_not(outside)));
      });
    });
    const Value all =
        tree.join({0}, {ScalarOp::logical_and}, {b_.get(fine)}, place.thread, place.thread, Tile::users)[0];
    const Value told = b_.from_users(all);
    return {b_.select(told, some.lo, b_.index(0)), b_.select(told, some.hi, count)};
  }

  const AttentionPlan& plan_;
  GroupColumnsParts parts_;
  PointProgram program_;  ///< without stores
  Tile tile_;
  KernelContext context_;
  kernel::Builder& b_;
  PointEmitter emitter_;
  PointEmitter::Scope top_;
  GroupPoints points_;
  std::vector<std::unique_ptr<RestingOperand>> resting_;  ///< by score
  std::vector<std::unique_ptr<PassingOperand>> passing_;
  std::vector<std::unique_ptr<GroupSums>> sums_;  ///< by end
};

}  // namespace

KernelContext::Built lower_group_columns(const AttentionPlan& plan, const Tile& tile) {
  return GroupColumns(plan, tile).run();
}

}  // namespace lathe::gpu
