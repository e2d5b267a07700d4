#include <algorithm>
#include <memory>
#include <optional>

#include "passes/lowering/attention_parts.h"
#include "passes/lowering/strip_loops.h"
#include "passes/schedule/gemm_pack.h"
#include "passes/schedule/register_tile.h"

namespace lathe {

using kernel::Value;
using schedule::LaneAxis;
using schedule::RegisterTile;
using Scope = PointEmitter::Scope;

namespace {

constexpr int column_block = 512;  // columns that a sum over columns goes through at once: they stay in the L2 cache
constexpr int strips_of_a_task = 4;

/// The code of a product that makes scores, inside one kernel.
struct ScoreCode {
  ScoreCode(KernelContext& context, const LoweringContext& lowering, const AttentionParts::Score& p, DType compute)
      : part(p), rows(context, lowering, p.rows, compute), columns(context, lowering, p.columns, compute) {}
  const AttentionParts::Score& part;
  OperandLoader rows, columns;
  ScratchMatrix packed_rows;                    ///< [depth][row]
  std::optional<ScratchMatrix> staged_columns;  ///< [column][depth], where it cannot be read in place
};

/// The code of a product that ends the attention.
struct EndCode {
  EndCode(KernelContext& context, const LoweringContext& lowering, const AttentionParts::End& p, DType compute)
      : part(p),
        other(context, lowering, p.other, compute),
        emitter(context, p.epilogue, lowering.buffer_of),
        top(emitter, {}) {}
  const AttentionParts::End& part;
  OperandLoader other;
  PointEmitter emitter;
  Scope top;
  ScratchMatrix sums;                   ///< [row or column][depth]
  std::optional<ScratchMatrix> staged;  ///< [column or row][depth], where it cannot be read in place
};

class AttentionKernel {
 public:
  AttentionKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        domain_(region.domain),
        context_("attention"),
        b_(context_.builder),
        program_(region_program(lowering.graph, lowering.plan, region.parts[0])),
        parts_(attention_parts(lowering, region, program_)),
        emitter_(context_, program_, lowering.buffer_of),
        top_(emitter_, {}),
        lanes_(program_lanes(program_, lowering.target)),
        vectors_(lowering.target.bits >= 512 ? 4 : 3),
        tile_rows_(lowering.target.bits >= 512 ? 6 : 4) {
    std::vector<int> results;
    for (const AttentionParts::End& end : parts_.ends) results.push_back(end.value);
    plan_.emplace(lowering.graph, program_, 1ULL << parts_.columns_dim, std::move(results));
    for (const AttentionParts::Score& part : parts_.scores)
      scores_.push_back(std::make_unique<ScoreCode>(context_, lowering, part, parts_.compute));
    for (const AttentionParts::End& part : parts_.ends)
      ends_.push_back(std::make_unique<EndCode>(context_, lowering, part, parts_.compute));
  }

  KernelContext::Built run() {
    declare();
    emit_uniform();
    const Value tasks = context_.dim(parts_.parallel), serial = context_.dim(parts_.serial);
    if (parts_.sums_over_rows()) {
      b_.parallel_for(0, tasks, 1, [&](Value task) {
        for (auto& end : ends_)
          if (end->part.over_rows) clear(*end);
        b_.for_loop(0, serial, 1, [&](Value s) { strips(task * serial + s, b_.index(0), rows_); });
        for (auto& end : ends_)
          if (end->part.over_rows) epilogue(*end, task, b_.index(0), columns_);
      });
    } else {
      const int step = strips_of_a_task * strip_rows();
      const Value chunks = b_.ceil_div(rows_, step);
      b_.parallel_for(0, tasks * serial * chunks, 1, [&](Value task) {
        const Value first = task % chunks * step;
        strips(task / chunks, first, min(first + step, rows_));
      });
    }
    return finish();
  }

 private:
  int strip_rows() const { return vectors_ * lanes_; }
  RegisterTile tile(int vectors) const { return {parts_.compute, lanes_, tile_rows_, vectors}; }
  int bytes() const { return lanes_ * static_cast<int>(size_in_bytes(parts_.compute)); }
  const Dim& row_count() const { return domain_[parts_.row_dim]; }
  const Dim& column_count() const { return domain_[parts_.columns_dim]; }

  // ------------------------------------------------------------------------------------------------------- memory

  /// The width of a matrix as whole vectors; of an unknown one at least as much.
  Dim rounded(const Dim& width) const {
    const auto number = width.value();
    return number ? Dim((*number + lanes_ - 1) / lanes_ * lanes_) : width.unnamed() + Dim(lanes_ - 1);
  }

  ScratchMatrix scratch(const Dim& rows, const Dim& width, DType dtype, const char* name) {
    const int id = lowering_.scratch(dtype, rows.unnamed() * rounded(width), name);
    context_.declare(id, dtype, true, true);
    const bool known = width.value().has_value();
    return {context_.buffer(id),
            known ? b_.index(*rounded(width).value()) : b_.round_up(context_.dim(width), lanes_)};
  }

  void declare() {
    std::vector<const PointProgram*> programs = {&program_};
    for (const auto& score : scores_)
      programs.insert(programs.end(), {&score->part.rows.code.program, &score->part.columns.code.program});
    for (const auto& end : ends_)
      programs.insert(programs.end(), {&end->part.epilogue, &end->part.other.code.program});
    declare_buffers(context_, programs, lowering_);
    const DType compute = parts_.compute;
    const Dim strip(strip_rows()), columns = column_count(), padded = columns.unnamed() + Dim(tile_rows_);
    std::vector<ScratchMatrix> slots;
    for (int s = 0; s < plan_->slots(); ++s)
      slots.push_back(scratch(padded, strip, plan_->slot_dtype(s), "strip of scores"));
    for (auto& score : scores_) {
      score->packed_rows = scratch(score->part.depth, strip, compute, "packed rows");
      if (!score->part.columns.plain)
        score->staged_columns = scratch(columns, score->part.depth, compute, "staged columns");
    }
    for (auto& end : ends_) {
      const bool over_rows = end->part.over_rows;
      end->sums = scratch(over_rows ? padded : strip + Dim(tile_rows_), end->part.depth, compute, "sums");
      if (!end->part.other.plain)
        end->staged = scratch(over_rows ? strip : columns, end->part.depth, compute, "staged operand");
    }
    const StripLoops::Shape shape{parts_.outer, parts_.row_dim, parts_.columns_dim, lanes_, vectors_};
    loops_.emplace(emitter_, *plan_, shape, std::move(slots));
    rows_ = context_.dim(row_count());
    columns_ = context_.dim(column_count());
  }

  /// What depends on no index comes ahead of the parallel loop.
  void emit_uniform() {
    for (int i = 0; i < program_.size(); ++i) {
      const PointInstruction& instruction = program_[i];
      const bool leaf = instruction.kind == PointInstruction::Kind::constant ||
                        (instruction.kind == PointInstruction::Kind::load && instruction.args.empty());
      if (leaf && program_.depends[static_cast<std::size_t>(i)] == 0) emitter_.emit(i, top_);
    }
    for (auto& score : scores_) {
      score->rows.emit_uniform();
      score->columns.emit_uniform();
    }
    for (auto& end : ends_) end->other.emit_uniform();
  }

  // ------------------------------------------------------------------------------------------------------- strips

  /// Rows first .. last of one outer index, strip by strip.
  void strips(Value outer, Value first, Value last) {
    for (auto& score : scores_)
      if (score->staged_columns)
        stage(score->columns, *score->staged_columns, outer, b_.index(0), columns_, score->part.depth);
    for (auto& end : ends_)
      if (end->staged && !end->part.over_rows)
        stage(end->other, *end->staged, outer, b_.index(0), columns_, end->part.depth);
    b_.for_loop(first, last, strip_rows(),
                [&](Value row) { strip({.outer = outer, .row = row, .lo = b_.index(0), .hi = columns_}); });
  }

  /// Copies positions first .. first + count of an operand, the depth of each contiguous.
  void stage(OperandLoader& from, const ScratchMatrix& to, Value outer, Value first, Value count, const Dim& depth) {
    b_.for_loop(0, count, 1, [&](Value position) {
      vector_loop(b_, b_.index(0), context_.dim(depth), lanes_, [&](Value d, Value mask) {
        const Value elements = from.load(outer, first + position, d, LaneAxis::k, lanes_, mask);
        b_.store(to.buffer, position * to.stride + d, elements, mask);
      });
    });
  }

  void strip(const StripPlace& place) {
    for (auto& score : scores_) {
      pack_rows(*score, place);
      score_product(*score, place);
    }
    StripLoops::Rows rows = loops_->run(place, rows_, top_);
    loops_->store_rows(rows);
    const Value count = min(rows_ - place.row, strip_rows());
    for (auto& end : ends_) {
      if (end->part.over_rows) {
        sum_over_rows(*end, place, count);
      } else {
        sum_over_columns(*end, place, count);
        epilogue(*end, place.outer, place.row, count);
      }
    }
  }

  void pack_rows(ScoreCode& score, const StripPlace& place) {
    const schedule::GemmTile gemm{.compute = parts_.compute, .lanes = lanes_};
    const schedule::LoadOperand load = score.rows.callback();
    const schedule::SliverSource from{.batch = place.outer,
                                      .row = place.row,
                                      .rows = rows_,
                                      .k0 = b_.index(0),
                                      .depth = context_.dim(score.part.depth),
                                      .width = strip_rows(),
                                      .axis = score.rows.axis(),
                                      .load = &load};
    emit_pack_sliver(b_, gemm, from, {.buffer = score.packed_rows.buffer, .base = b_.index(0)});
  }

  /// slot[column][row] = sum over the depth.
  void score_product(ScoreCode& score, const StripPlace& place) {
    const ScratchMatrix& slot = loops_->slot(score.part.value);
    b_.for_loop(place.lo, place.hi, tile_rows_, [&](Value column) {
      std::vector<Value> positions;
      for (int r = 0; r < tile_rows_; ++r) positions.push_back(r == 0 ? column : min(column + r, columns_ - 1));
      const auto element = [&](Value k, int r) {
        const Value position = positions[static_cast<std::size_t>(r)];
        if (const auto& staged = score.staged_columns) return b_.load(staged->buffer, position * staged->stride + k);
        return score.columns.load(place.outer, position, k, LaneAxis::k, 1, {});
      };
      const auto vector = [&](Value k, int v) {
        return b_.load(score.packed_rows.buffer, k * score.packed_rows.stride + v * lanes_, lanes_, {}, bytes());
      };
      const auto sink = [&](int r, int v, Value sum) {
        b_.store(slot.buffer, (column + r) * slot.stride + v * lanes_, sum, {}, bytes());
      };
      emit_register_tile(b_, tile(vectors_), b_.index(0), context_.dim(score.part.depth), element, vector, {}, sink);
    });
  }

  // --------------------------------------------------------------------------------------------------------- ends

  /// Vectors of the other operand at positions first + k, along the depth from `depth0` on.
  schedule::TileVector depth_vectors(EndCode& end, Value outer, Value first, Value depth0, bool masked) {
    std::vector<Value> masks;
    for (int v = 0; v < vectors_; ++v)
      masks.push_back(masked ? b_.tail_mask(context_.dim(end.part.depth) - depth0 - v * lanes_, lanes_) : Value{});
    return [this, &end, outer, first, depth0, masks](Value k, int v) {
      const Value d = depth0 + v * lanes_;
      if (end.staged) return b_.load(end.staged->buffer, k * end.staged->stride + d, lanes_, {}, bytes());
      return end.other.load(outer, first + k, d, LaneAxis::k, lanes_, masks[static_cast<std::size_t>(v)]);
    };
  }

  /// body(depth0, vectors, masked) for tiles that cover a depth.
  void depth_tiles(const Dim& depth, const std::function<void(Value, int, bool)>& body) {
    const auto known = depth.value();
    if (!known) {
      b_.for_loop(0, context_.dim(depth), lanes_, [&](Value d) { body(d, 1, true); });
      return;
    }
    const int all = static_cast<int>((*known + lanes_ - 1) / lanes_);
    for (int v = 0; v < all; v += vectors_) {
      const int vectors = std::min(vectors_, all - v);
      body(b_.index(v * lanes_), vectors, (v + vectors) * lanes_ > *known);
    }
  }

  /// sums[row] = sum over columns of value[column][row] * other[column].
  void sum_over_columns(EndCode& end, const StripPlace& place, Value count) {
    const ScratchMatrix& slot = loops_->slot(end.part.value);
    const Value blocks = max(b_.ceil_div(place.hi - place.lo, column_block), 1);
    b_.for_loop(0, blocks, 1, [&](Value block) {
      const Value lo = place.lo + block * column_block, hi = min(lo + column_block, place.hi);
      const Value continues = b_.broadcast(block > 0, lanes_);
      depth_tiles(end.part.depth, [&](Value depth0, int vectors, bool masked) {
        b_.for_loop(0, count, tile_rows_, [&](Value row) {
          const auto at = [&](int r, int v) { return (row + r) * end.sums.stride + depth0 + v * lanes_; };
          const auto element = [&](Value k, int r) { return b_.load(slot.buffer, k * slot.stride + row + r); };
          const auto start = [&](int r, int v) {
            return b_.load(end.sums.buffer, at(r, v), lanes_, continues, bytes());
          };
          const auto sink = [&](int r, int v, Value sum) { b_.store(end.sums.buffer, at(r, v), sum, {}, bytes()); };
          const auto vector = depth_vectors(end, place.outer, b_.index(0), depth0, masked);
          emit_register_tile(b_, tile(vectors), lo, hi, element, vector, start, sink);
        });
      });
    });
  }

  void clear(const EndCode& end) {
    const Value elements = b_.round_up(columns_, tile_rows_) * end.sums.stride;
    b_.for_loop(0, elements, lanes_,
                [&](Value i) { b_.store(end.sums.buffer, i, b_.constant(parts_.compute, 0, lanes_), {}, bytes()); });
  }

  /// sums[column] += sum over the strip's rows of value[column][row] * other[row].
  void sum_over_rows(EndCode& end, const StripPlace& place, Value count) {
    const ScratchMatrix& slot = loops_->slot(end.part.value);
    if (end.staged) stage(end.other, *end.staged, place.outer, place.row, count, end.part.depth);
    const Value first = end.staged ? b_.index(0) : place.row;
    depth_tiles(end.part.depth, [&](Value depth0, int vectors, bool masked) {
      b_.for_loop(place.lo, place.hi, tile_rows_, [&](Value column) {
        const auto at = [&](int r, int v) { return (column + r) * end.sums.stride + depth0 + v * lanes_; };
        const auto element = [&](Value k, int r) { return b_.load(slot.buffer, (column + r) * slot.stride + k); };
        const auto start = [&](int r, int v) { return b_.load(end.sums.buffer, at(r, v), lanes_, {}, bytes()); };
        const auto sink = [&](int r, int v, Value sum) { b_.store(end.sums.buffer, at(r, v), sum, {}, bytes()); };
        const auto vector = depth_vectors(end, place.outer, first, depth0, masked);
        emit_register_tile(b_, tile(vectors), b_.index(0), count, element, vector, start, sink);
      });
    });
  }

  /// Hands the sums of positions first .. first + count to what reads the product.
  void epilogue(EndCode& end, Value outer, Value first, Value count) {
    const DType compute = parts_.compute, dtype = lowering_.graph[end.part.node].type.dtype;
    b_.for_loop(0, count, 1, [&](Value position) {
      vector_loop(b_, b_.index(0), context_.dim(end.part.depth), lanes_, [&](Value d, Value mask) {
        Scope scope(end.emitter,
                    {{end.part.outer_dims, outer, 1},
                     {end.part.position_dims, first + position, 1},
                     {end.part.depth_dims, d, lanes_}},
                    mask, &end.top);
        const Value sum = b_.load(end.sums.buffer, position * end.sums.stride + d, lanes_, {}, bytes());
        scope.bind(0, compute == dtype ? sum : b_.cast(b_.cast(sum, dtype), compute));
        for (const PointStore& store : end.part.epilogue.stores)
          end.emitter.store(store.node, end.part.epilogue[store.value].dtype, store.form,
                            end.emitter.emit(store.value, scope), scope);
      });
    });
  }

  KernelContext::Built finish() {
    Dim depths(0);
    for (const auto& score : scores_) depths = depths + score->part.depth;
    for (const auto& end : ends_) depths = depths + end->part.depth;
    const Dim rows = row_count().unnamed(), columns = column_count().unnamed();
    auto built = context_.finish();
    built.launch.flops = Dim(2) * parts_.parallel * parts_.serial * rows * columns * depths;
    const Dim task_rows = parts_.sums_over_rows() ? parts_.serial * rows : Dim(strips_of_a_task * strip_rows());
    built.launch.work = task_rows * columns * Dim(8);
    return built;
  }

  const LoweringContext& lowering_;
  const Shape& domain_;
  KernelContext context_;
  kernel::Builder& b_;
  PointProgram program_;
  AttentionParts parts_;
  PointEmitter emitter_;
  Scope top_;
  int lanes_, vectors_, tile_rows_;
  std::optional<StripPlan> plan_;
  std::optional<StripLoops> loops_;
  std::vector<std::unique_ptr<ScoreCode>> scores_;
  std::vector<std::unique_ptr<EndCode>> ends_;
  Value rows_, columns_;
};

}  // namespace

KernelContext::Built lower_attention(const LoweringContext& context, const Region& region) {
  return AttentionKernel(context, region).run();
}

}  // namespace lathe
