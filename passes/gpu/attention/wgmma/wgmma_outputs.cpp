#include "passes/gpu/attention/wgmma/wgmma_outputs.h"

#include <memory>

#include "passes/gpu/attention/attention_known_rows.h"
#include "passes/gpu/attention/wgmma/wgmma_elementwise.h"
#include "passes/gpu/attention/wgmma/wgmma_positions.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;
using kernel::Var;

namespace {

class GroupEnds {
 public:
  GroupEnds(const AttentionPlan& plan, bool over_rows, const GroupEndsTile& tile)
      : plan_(plan),
        parts_(group_ends_parts(plan, over_rows)),
        program_(plan.attention.program),
        tile_(tile),
        context_(over_rows ? "attention_columns_by_groups" : "attention_rows_by_groups"),
        b_(context_.builder),
        emitter_(context_, program_, plan.lowering.buffer_of),
        top_(emitter_, {}),
        points_(plan, context_, emitter_, parts_, tile.at_once) {
    program_.stores.clear();
    for (const auto* score : parts_.scores)
      resting_.push_back(std::make_unique<RestingOperand>(context_, plan.lowering, parts_.rests(*score), score->depth,
                                                          plan.tile, GroupEndsTile::resting));
    for (const AttentionOperand* operand : parts_.passing)
      passing_.push_back(std::make_unique<PassingOperand>(context_, *operand, false, GroupEndsTile::passing,
                                                          static_cast<int>(*operand->size.value())));
    for (const auto* end : parts_.ends) sums_.push_back(std::make_unique<GroupSums>(context_, plan.lowering, *end));
  }

  KernelContext::Built run() {
    declare();
    const AttentionProgram& attention = plan_.attention;
    rows_ = context_.dim(attention.rows), columns_ = context_.dim(attention.column_count);
    serial_ = parts_.over_rows ? context_.dim(attention.parts.serial) : b_.index(1);
    const Value strips = b_.ceil_div(parts_.over_rows ? columns_ : rows_, GroupEndsTile::resting);
    const Value outer = context_.dim(parts_.over_rows ? attention.parts.parallel : plan_.outer());
    const auto block = [&](Value i) {
      Value strip = i % strips;
      if (!parts_.over_rows && attention.bounds.upper) strip = strips - 1 - strip;  // the longest ones first
      this->block(i / strips, strip * GroupEndsTile::resting);
    };
    b_.for_loop(0, outer * strips, 1, block, kernel::LoopKind::block_x);
    Dim depth(0);
    for (const auto* end : parts_.ends) depth = depth + end->depth;
    auto built = context_.finish();
    built.launch.flops = attention.flops(depth);
    return built;
  }

 private:
  struct Place {
    Value outer, first, thread;  ///< outer: of the parallel ones; the first position that rests
  };
  /// What passes: where their strips say so, those alone that may add something.
  struct Range {
    Value lo, hi;
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

  void block(Value outer, Value first) {
    for (const auto& operand : resting_) operand->allocate("resting");
    for (const auto& operand : passing_) operand->allocate(plan_.tile.held, tile_.stages, "passing");
    std::optional<SharedTree> tree;
    if (parts_.over_rows && plan_.skips >= 0) tree.emplace(b_, std::vector<DType>{boolean}, GroupEndsTile::users);
    const auto thread = [&](Value t) {
      const Place place{outer, first, t};
      const Value count = parts_.over_rows ? columns_ : rows_;
      b_.if_(t < GroupEndsTile::users, [&] {
        for (const auto& operand : resting_) operand->bring(outer * serial_, first, count, t, GroupEndsTile::users);
      });
      Range range{b_.index(0), parts_.over_rows ? rows_ : columns_};
      if (!parts_.over_rows && plan_.skips >= 0) range = columns_kept(place);
      b_.ring(tile_.stages, GroupEndsTile::users, [&] { sum(place, tree ? rows_that_keep(place, *tree) : range); });
    };
    b_.for_loop(0, GroupEndsTile::threads, 1, thread, kernel::LoopKind::thread_x);
  }

  void sum(const Place& place, const Range& range) {
    for (const auto& sum : sums_) sum->declare();
    points_.declare();
    b_.for_loop(0, serial_, 1, [&](Value s) {
      const Value outer = place.outer * serial_ + s;
      points_.enter(outer, place.first, place.thread, &top_);
      b_.for_loop(range.lo, range.hi, GroupEndsTile::passing, [&](Value position) {
        const auto fill = [&](Value slot) {
          for (const auto& operand : passing_) operand->fill(slot, outer, position);
        };
        b_.stage(fill, [&](Value slot) {
          for (int first = 0; first < GroupEndsTile::passing; first += tile_.at_once)
            part(place, slot, position, first);
        });
      });
    });
    b_.wait_sums(registers());
    for (const auto& sum : sums_) sum->finish(place.outer, place.first, place.thread);
  }

  /// The positions of the tile from `first` on.
  void part(const Place& place, Value slot, Value position, int first) {
    points_.begin(position + first);
    for (std::size_t s = 0; s < resting_.size(); ++s)
      multiply(b_, points_.scores()[s], *resting_[s], place.thread, passing(parts_.passes(*parts_.scores[s])), slot,
               first);
    b_.wait_sums(registers());
    points_.make_weights(position + first);
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

  /// Whether a strip of 64 rows has left out columns; true where there is none.
  Value left_out(Value outer, Value strip, Value there) {
    const Value strips = context_.dim(plan_.strips_of(plan_.attention.rows));
    const Value left_out = b_.load(context_.buffer(plan_.skips), outer * strips + strip, 1, there);
    return left_out || kernel::logical_not(there);
  }

  Range columns_kept(const Place& place) {
    const ColumnBounds& bounds = plan_.attention.bounds;
    Value all = b_.constant_int(boolean, 1), lo = b_.index(0), hi = columns_;
    for (int strip = 0; strip < GroupEndsTile::resting; strip += GroupEndsTile::passing)
      all = all && left_out(place.outer, (place.first + strip) / GroupEndsTile::passing, place.first + strip < rows_);
    if (bounds.lower)
      lo = max(place.first + context_.dim(*bounds.lower), 0) / GroupEndsTile::passing * GroupEndsTile::passing;
    if (bounds.upper) hi = max(min(place.first + GroupEndsTile::resting + context_.dim(*bounds.upper), columns_), 0);
    return {b_.select(all, lo, b_.index(0)), b_.select(all, hi, columns_)};
  }

  Range rows_that_keep(const Place& place, SharedTree& tree) {
    const ColumnBounds& bounds = plan_.attention.bounds;
    const Value strips = b_.ceil_div(rows_, GroupEndsTile::passing);
    Value lo = b_.index(0), hi = rows_;
    if (bounds.upper)
      lo = max(place.first - context_.dim(*bounds.upper), 0) / GroupEndsTile::passing * GroupEndsTile::passing;
    if (bounds.lower) hi = max(min(place.first + GroupEndsTile::resting - context_.dim(*bounds.lower), rows_), 0);
    const Var fine = b_.var(b_.constant_int(boolean, 1));
    b_.for_loop(0, serial_, 1, [&](Value s) {
      b_.for_loop(place.thread, strips, GroupEndsTile::users, [&](Value strip) {
        const Value row = strip * GroupEndsTile::passing;
        b_.set(fine, b_.get(fine) && left_out(place.outer * serial_ + s, strip, row < lo || row >= hi));
      });
    });
    const Value all =
        tree.join({0}, {ScalarOp::logical_and}, {b_.get(fine)}, place.thread, place.thread, GroupEndsTile::users)[0];
    const Value told = b_.from_users(all);
    return {b_.select(told, lo, b_.index(0)), b_.select(told, hi, rows_)};
  }

  const AttentionPlan& plan_;
  GroupEndsParts parts_;
  PointProgram program_;  ///< without stores
  GroupEndsTile tile_;
  KernelContext context_;
  kernel::Builder& b_;
  PointEmitter emitter_;
  PointEmitter::Scope top_;
  Value rows_, columns_, serial_;
  GroupPoints points_;
  std::vector<std::unique_ptr<RestingOperand>> resting_;  ///< by score
  std::vector<std::unique_ptr<PassingOperand>> passing_;
  std::vector<std::unique_ptr<GroupSums>> sums_;  ///< by end
};

}  // namespace

KernelContext::Built lower_group_ends(const AttentionPlan& plan, bool over_rows, const GroupEndsTile& tile) {
  return GroupEnds(plan, over_rows, tile).run();
}

}  // namespace lathe::gpu
