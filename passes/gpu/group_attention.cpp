#include "passes/gpu/group_attention.h"

#include <algorithm>
#include <bit>

#include "ir/kernel/panels.h"
#include "passes/gpu/attention_end.h"
#include "passes/gpu/attention_guard.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/group_softmax.h"
#include "passes/gpu/tensor_boxes.h"
#include "passes/lowering/column_guard.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Tile = GroupAttentionTile;
using Scopes = GroupSoftmax::Scopes;

namespace {

class GroupAttention {
 public:
  GroupAttention(const AttentionPlan& plan, const Tile& tile)
      : plan_(plan),
        bounds_(plan.attention.bounds),
        score_(plan.attention.parts.scores[0]),
        tile_(tile),
        context_("attention_by_groups"),
        b_(context_.builder),
        emitter_(context_, plan.attention.program, plan.lowering.buffer_of),
        top_(emitter_, {}),
        queries_(context_, plan.lowering, score_.rows, plan.tile.compute),
        keys_{score_.columns},
        values_{plan.attention.parts.ends[0].other},
        end_(context_, plan.lowering, plan.attention.parts.ends[0]),
        softmax_(plan, context_, emitter_, tile.columns) {}

  KernelContext::Built run() {
    declare();
    const Value strips = b_.ceil_div(context_.dim(plan_.attention.rows), Tile::rows);
    const auto block = [&](Value i) {
      Value strip = i % strips;
      if (bounds_.upper) strip = strips - 1 - strip;  // the longest ones first
      this->block(i / strips, strip * Tile::rows);
    };
    b_.for_loop(0, context_.dim(plan_.outer()) * strips, 1, block, LoopKind::block_x);
    auto built = context_.finish();
    built.launch.flops = plan_.attention.flops(score_.depth + end_.part().depth);
    return built;
  }

 private:
  /// An operand whose tiles pass through the ring.
  struct Passing {
    const AttentionOperand& operand;
    std::optional<BoxCopies> boxes = {};
    kernel::Buffer shared = {};
    bool transposed = false;

    void map(KernelContext& context, const AttentionPlan& plan, bool sums_positions, int rows, int depth) {
      const GroupOperand from = GroupOperand::of(operand, *axis_of_pieces(operand, plan.tile.held), sums_positions);
      transposed = !from.along_k;
      boxes.emplace(context, context.buffer(plan.lowering.buffer_of(from.program[0].buffer)), *TensorBoxes::of(from),
                    from.along_k, rows, depth);
    }
  };
  struct Place {
    Value outer, row, thread;
  };

  void declare() {
    const PointProgram& of_queries = score_.rows.code.program;
    declare_buffers(context_,
                    {&plan_.attention.program, &of_queries, &keys_.operand.code.program,
                     &values_.operand.code.program, &end_.part().epilogue},
                    plan_.lowering);
    for (const auto& magnitude : plan_.magnitudes)
      context_.declare(magnitude.buffer, plan_.tile.compute, true, false);
    emitter_.hoist(top_);
    queries_.hoist();
    end_.hoist();
    keys_.map(context_, plan_, false, tile_.columns, Tile::padded(tile_.depth));
    values_.map(context_, plan_, true, Tile::padded(tile_.values), tile_.columns);
  }

  void block(Value outer, Value row) {
    const auto shared = [&](std::int64_t count, const char* name) {
      return b_.alloc(plan_.tile.held, count, kernel::Space::shared, name);
    };
    shared_queries_ = shared(tile_.queries(), "queries");
    keys_.shared = shared(tile_.stages * tile_.keys(), "keys");
    values_.shared = shared(tile_.stages * tile_.value_elements(), "values");
    std::optional<SharedTree> tree;
    if (bounds_.any()) tree.emplace(b_, std::vector<DType>{boolean}, Tile::users);
    const auto thread = [&](Value t) {
      const Place place{outer, row, t};
      b_.if_(t < Tile::users, [&] { bring_queries(place); });
      if (!bounds_.any()) return b_.ring(tile_.stages, Tile::users, [&] { all_columns(place); });
      const GuardedColumns first =
          guarded_columns(context_, plan_, place.outer, place.row, Tile::rows, tile_.columns);
      b_.ring(tile_.stages, Tile::users, [&] { some_columns(place, first, *tree); });
    };
    b_.for_loop(0, Tile::threads, 1, thread, LoopKind::thread_x);
  }

  /// To panels: for every 64 of the depth those of all rows. They are seen by the groups when the ring begins.
  void bring_queries(const Place& place) {
    constexpr int piece = 8;
    const int pieces = Tile::padded(tile_.depth) / piece;
    const Value last = context_.dim(plan_.attention.rows) - 1;
    b_.for_loop(place.thread, Tile::rows * pieces, Tile::users, [&](Value number) {
      const Value row = number / pieces, depth = number % pieces * piece;
      const Var elements = zero_vectors(b_, {plan_.tile.compute, piece}, 1)[0];
      b_.if_(depth < tile_.depth, [&] {
        set_inside(b_, elements, depth, b_.index(tile_.depth), score_.depth, [&](Value mask) {
          return queries_.load(place.outer, min(place.row + row, last), depth, schedule::LaneAxis::k, piece, mask);
        });
      });
      const Value panels = depth / kernel::panel_side * (Tile::rows * kernel::panel_side);
      b_.store(shared_queries_, panels + kernel::panel_place(b_, row, depth % kernel::panel_side),
               b_.cast(b_.get(elements), plan_.tile.held));
    });
  }

  void all_columns(const Place& place) {
    const Registers registers = declare_registers();
    columns(place, b_.index(0), context_.dim(plan_.attention.column_count), registers);
    store(place, registers);
  }

  void some_columns(const Place& place, const GuardedColumns& first, SharedTree& tree) {
    const Registers registers = declare_registers();
    go_through(b_, first, context_.dim(plan_.attention.column_count), [&](Value lo, Value hi) {
      Scopes rows = columns(place, lo, hi, registers);
      const Value fine = rows_bear_out(emitter_, bounds_, rows, first.magnitude);
      const Value all = tree.join({0}, {ScalarOp::logical_and}, {fine}, place.thread, place.thread, Tile::users)[0];
      b_.barrier();  // the memory is used again
      return b_.from_users(all);
    });
    store(place, registers);
  }

  /// The scores of a tile, and the result's sums in parts of some columns.
  struct Registers {
    Var scores;
    std::vector<Var> sums;
    std::vector<Var> all() const {
      std::vector<Var> both = sums;
      both.push_back(scores);
      return both;
    }
  };

  /// The result's columns in parts that one wgmma has; of the last ones no more than are needed.
  Registers declare_registers() {
    const auto zeros = [&](int columns) { return zero_vectors(b_, {f32, columns / 2}, 1)[0]; };
    Registers registers{zeros(tile_.columns), {}};
    for (int left = tile_.values; left > 0; left -= 2 * registers.sums.back().type.lanes) {
      const int most = left >= kernel::group_columns ? kernel::group_columns : kernel::panel_side;
      const auto needed = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(left, 16))));
      registers.sums.push_back(zeros(std::min(most, needed)));
    }
    return registers;
  }

  Scopes columns(const Place& place, Value lo, Value hi, const Registers& registers) {
    Scopes rows = softmax_.rows(place.outer, place.row, place.thread, &top_);
    clear(b_, registers.sums);
    softmax_.begin(rows);
    b_.for_loop(lo, hi, tile_.columns, [&](Value column) {
      const auto fill = [&](Value slot) {
        keys_.boxes->copy(keys_.shared, place.outer, column, b_.index(0), slot * tile_.keys());
        values_.boxes->copy(values_.shared, place.outer, b_.index(0), column, slot * tile_.value_elements());
      };
      b_.stage(fill, [&](Value slot) { tile(rows, place, column, slot, registers); });
    });
    b_.wait_sums(registers.all());
    scale(registers, ScalarOp::mul, softmax_.finish(rows, place.thread));
    if (end_.part().divisor) divide(rows, registers);
    store_rows(rows, place);
    return rows;
  }

  void tile(Scopes& rows, const Place& place, Value column, Value slot, const Registers& registers) {
    b_.set(registers.scores, b_.constant(f32, 0, registers.scores.type.lanes));
    const Value group = place.thread / kernel::group_threads;
    for (int k = 0; k < tile_.depth; k += kernel::group_depth) {
      const Value left = group * kernel::panel_elements + k * Tile::rows;
      const int deep = std::min(kernel::group_depth, (tile_.depth - k + 15) / 16 * 16);
      b_.group_mma(registers.scores, {shared_queries_, left},
                   {keys_.shared, slot * tile_.keys() + k * tile_.columns, keys_.transposed}, deep);
    }
    b_.wait_sums(registers.all());
    const std::vector<Value> factors =
        softmax_.take(rows, {place.outer, place.row, column}, b_.get(registers.scores), place.thread);
    scale(registers, ScalarOp::mul, factors);
    const int width = Tile::padded(tile_.values);
    for (int part = 0; part < tile_.columns / kernel::group_depth; ++part) {
      const Value weights = softmax_.weights(part);
      int first = part * width;  // in panels' sides
      for (const Var sums : registers.sums) {
        b_.group_mma(
            sums, weights,
            {values_.shared, slot * tile_.value_elements() + first * kernel::group_depth, values_.transposed});
        first += 2 * sums.type.lanes;
      }
    }
  }

  /// Multiplies or divides the sums by a value of each row.
  void scale(const Registers& registers, ScalarOp op, const std::vector<Value>& by) {
    for (const Var sums : registers.sums) {
      std::vector<int> lanes;
      for (int i = 0; i < sums.type.lanes; ++i) lanes.push_back(i % 4 / 2);
      const Value factors = b_.shuffle(b_.cast(by[0], f32), b_.cast(by[1], f32), lanes);
      b_.set(sums, b_.apply(op, {b_.get(sums), factors}));
    }
  }

  void divide(Scopes& rows, const Registers& registers) {
    std::vector<Value> divisors;
    const Value some = context_.dim(plan_.attention.column_count) > 0;
    for (auto& row : rows)
      divisors.push_back(
          b_.select(some, b_.cast(emitter_.emit(*end_.part().divisor, *row), f32), b_.constant(f32, 1)));
    scale(registers, ScalarOp::div, divisors);
  }

  /// What does not vary along the columns: by one thread of each row.
  void store_rows(Scopes& rows, const Place& place) {
    const auto& stores = plan_.strips.row_stores();
    if (stores.empty()) return;
    const AttentionParts& parts = plan_.attention.parts;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const PointStore* s : stores) emitter_.emit(s->value, *rows[r]);
      b_.if_(rows[r]->mask && equal(GroupSoftmax::first_column(place.thread), 0), [&] {
        const Value row =
            place.row + GroupSoftmax::first_row(place.thread) + static_cast<int>(r) * GroupSoftmax::row_step;
        GroupSoftmax::Scope there(emitter_, {{parts.outer, place.outer, 1}, {{parts.row_dim}, row, 1}}, {},
                                  rows[r].get());
        for (const PointStore* s : stores)
          emitter_.store(s->node, emitter_.program()[s->value].dtype, s->form, emitter_.emit(s->value, there), there);
      });
    }
  }

  /// The result, two neighbours at a time.
  void store(const Place& place, const Registers& registers) {
    int first = 0;
    for (const Var sums : registers.sums) {
      const int lanes = sums.type.lanes;
      const kernel::Buffer kept = b_.alloc(f32, lanes, kernel::Space::register_, "sums");
      b_.store(kept, 0, b_.get(sums));
      const auto pair = [&](Value i) {
        const Value row = place.row + GroupSoftmax::first_row(place.thread) + i % 2 * GroupSoftmax::row_step;
        const Value depth = i / 2 * 8 + GroupSoftmax::first_column(place.thread) + first;
        end_.finish(place.outer, row, depth, b_.load(kept, i * 2, 2));
      };
      b_.for_loop(0, lanes / 2, 1, pair, LoopKind::unroll);
      first += 2 * lanes;
    }
  }

  const AttentionPlan& plan_;
  const ColumnBounds& bounds_;
  const AttentionParts::Score& score_;
  Tile tile_;
  KernelContext context_;
  kernel::Builder& b_;
  PointEmitter emitter_;
  PointEmitter::Scope top_;
  OperandLoader queries_;
  Passing keys_, values_;
  AttentionEnd end_;
  GroupSoftmax softmax_;
  kernel::Buffer shared_queries_;
};

}  // namespace

KernelContext::Built lower_group_attention(const AttentionPlan& plan, const Tile& tile) {
  return GroupAttention(plan, tile).run();
}

}  // namespace lathe::gpu
