#include "passes/gpu/gemm/gemv/gemv.h"

#include <algorithm>
#include <bit>

#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "passes/gpu/gemm/gemv/row_operand.h"
#include "passes/gpu/program_vectors.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Position = ProductParts::Position;

namespace {

/// Blocks of a matmul that computes its left operand: more would compute it more often, and all of them are resident.
constexpr std::int64_t most_blocks = 2 * estimated_multiprocessors;
constexpr unsigned sum_registers = 32;  // registers of a thread
constexpr int most_early_rows = 2;      // whose registers leave room for loads that precede the left operand

/// Returns the lanes of a thread whose sums, of all lanes of all rows, are in registers.
int most_lanes(int rows) {
  return std::max(1, static_cast<int>(std::bit_floor(sum_registers / static_cast<unsigned>(rows))));
}

/// The most blocks per batch of a matmul that computes its left operand; 0: no limit.
std::int64_t most_blocks_of(const Dim& batch) {
  const auto batches = batch.value();
  return batches ? (most_blocks + *batches - 1) / std::max<std::int64_t>(*batches, 1) : 0;
}

/// Returns a scope with what is the same for all elements of the depth, such as a row that a cache gets.
ElementwiseEmitter::Scope scope_of_column(const ProductParts::Side& right, Value batch, Value column, int lanes,
                                          Value mask) {
  ElementwiseEmitter::Scope scope(right.loads, {{right.operand.batch, batch, 1}, {right.operand.rows, column, lanes}},
                                  mask, &right.top);
  std::uint64_t along = 0;
  for (const int d : right.operand.k) along |= std::uint64_t{1} << d;
  right.loads.hoist(scope, along);
  return scope;
}

/// Prefetches what an operand loads from arguments of the graph.
void prefetch_arguments(const ir::Graph& graph, const ProductParts::Side& side, ElementwiseEmitter::Scope& scope) {
  const ElementwiseProgram& program = side.operand.operand.program;
  for (int i = 0; i < program.size(); ++i)
    if (program[i].kind == ElementwiseInstruction::Kind::load && graph[program[i].buffer].op->as<ir::Argument>())
      side.loads.prefetch(i, scope);
}

/// GEMV: the threads mainly read the right operand, from adjacent addresses, with several loads in
/// flight each. The few rows of the left operand come from caches, or each block computes them.
class Gemv {
 public:
  Gemv(const GpuContext& lowering, const Region& region)
      : graph_(lowering.graph),
        parts_(lowering, region),
        operands_(parts_.operands),
        b_(parts_.builder()),
        rows_(static_cast<int>(*operands_.m.value())),
        along_k_(parts_.right.along_k()),
        left_(parts_, rows_),
        plan_(plan(lowering)),
        starts_in_tile_(!left_.is_computed() || has_one_tile()),
        loads_early_(can_load_early()) {
    if (starts_in_tile_) left_.keep_first_chunk();
  }

  KernelContext::Built run() {
    if (!left_.is_computed())
      return parts_.tiles(rows_, columns(),
                          [&](const Position& at) { block(at.batch, [&](const Tile& tile) { tile(at.n); }); });
    return parts_.tiles_in_turn(rows_, columns(), nullptr, [&](const ProductParts::Tiling& all) { blocks(all); });
  }

 private:
  using Tile = std::function<void(Value first_column)>;
  /// Calls its argument for each tile of a block.
  using Tiles = std::function<void(const Tile&)>;

  GemvPlan plan(const GpuContext& lowering) const {
    const GpuInfo& gpu = lowering.gpu;
    const ProductOperands& o = operands_;
    const int lanes =
        std::min(program_vectors(o.right.operand.program, gpu.vectors).lanes(o.compute), most_lanes(rows_));
    const auto bytes = static_cast<int>(size_in_bytes(o.compute));
    const auto shared = [&](int threads) { return gpu.static_shared_bytes - left_.shared_bytes(threads); };
    return along_k_ ? plan_dots(gpu, lanes, (o.batch * o.n).value(), o.k.value())
                    : plan_columns(shared, lanes, rows_, bytes, o.batch.value(), o.n.value(), o.k.value());
  }

  /// Columns of a block.
  int columns() const { return plan_.threads / plan_.split * (along_k_ ? 1 : plan_.lanes); }

  /// Whether a block has one tile, in a matmul that computes its left operand.
  bool has_one_tile() const {
    const auto n = operands_.n.value();
    const std::int64_t most = most_blocks_of(operands_.batch);
    return most == 0 || (n && *n <= most * columns());
  }

  /// Whether threads load the first part of the right operand before the left one is at hand, and hold it in
  /// registers meanwhile: all elements of that part are inside.
  bool can_load_early() const {
    const auto n = operands_.n.value(), k = operands_.k.value();
    const std::int64_t first = std::int64_t{plan_.split} * plan_.at_once * (along_k_ ? plan_.lanes : 1);
    return left_.is_computed() && left_.is_whole() && starts_in_tile_ && rows_ <= most_early_rows && *k >= first &&
           (along_k_ || (n && *n % columns() == 0));
  }

  /// The blocks of a matmul that computes its left operand: each takes several tiles of a batch in turn.
  void blocks(const ProductParts::Tiling& all) {
    const bool is_alone = has_one_tile();
    const Value each = is_alone ? all.across : kernel::min(all.across, most_blocks_of(operands_.batch));
    const auto one = [&](Value i) {
      const Value first = i % each;
      block(i / each, [&](const Tile& tile) {
        if (is_alone) return tile(first * all.columns);
        b_.for_loop(first, all.across, each, [&](Value n) {
          tile(n * all.columns);
          b_.barrier();  // before the next tile uses the memory of this one
        });
      });
    };
    b_.for_loop(0, parts_.context().dim(operands_.batch) * each, 1, one, LoopKind::block_x);
  }

  void block(Value batch, const Tiles& tiles) { along_k_ ? dots(batch, tiles) : sum_columns(batch, tiles); }

  /// Prepares the left operand before the first tile. All threads call it.
  void start(Value thread, Value batch) {
    if (!left_.is_computed()) return;
    left_.reduce(thread, batch, plan_.lanes);
    if (left_.is_whole()) left_.compute(thread, batch, b_.index(0), parts_.k, plan_.lanes);
  }

  /// Runs body(first, count) for ranges of the depth whose left operand is at hand.
  void for_ranges_of_depth(Value thread, Value batch, const std::function<void(Value, Value)>& body) {
    if (!left_.is_computed() || left_.is_whole()) return body(b_.index(0), parts_.k);
    const auto range = [&](Value first, Value count, bool is_kept) {
      is_kept ? left_.compute_kept(thread, batch, count, plan_.lanes)
              : left_.compute(thread, batch, first, count, plan_.lanes);
      body(first, count);
      b_.barrier();
    };
    const std::int64_t kept = left_.keeps_first_chunk() ? left_.chunk() : 0;
    if (kept > 0) range(b_.index(0), kernel::min(parts_.k, kept), true);
    b_.for_loop(b_.index(kept), parts_.k, left_.chunk(),
                [&](Value first) { range(first, kernel::min(parts_.k - first, left_.chunk()), false); });
  }

  /// Prepares the left operand, which may take a wait for other blocks. Before that, a thread runs the loads of its
  /// first step, if they are early, and returns them; otherwise it prefetches what they read from arguments: the rows
  /// of caches.
  template <class Load>
  std::vector<Value> start_tile(Value thread, Value batch, Value column, Value own, std::int64_t stride,
                                const Load& load) {
    std::vector<Value> loaded;
    for (int i = 0; i < plan_.at_once && loads_early_; ++i) loaded.push_back(load(own + i * stride, Value{}));
    if (!loads_early_ && starts_in_tile_ && rows_ <= most_early_rows)
      b_.if_(column < parts_.n, [&] { prefetch_right(batch, column, own, stride); });
    if (starts_in_tile_) start(thread, batch);
    return loaded;
  }

  /// Prefetches what a thread's first loads read from arguments, unless it reads nothing else, and waits for nothing.
  void prefetch_right(Value batch, Value column, Value own, std::int64_t stride) {
    const ProductOperand& right = parts_.right.operand;
    if (right.operand.program.size() == 1 && !left_.is_computed()) return;
    const int of_row = along_k_ ? 1 : plan_.lanes, of_k = along_k_ ? plan_.lanes : 1;
    for (int i = 0; i < plan_.at_once; ++i)
      b_.if_(own + i * stride < parts_.k, [&] {
        ElementwiseEmitter::Scope scope(
            parts_.right.loads,
            {{right.batch, batch, 1}, {right.rows, column, of_row}, {right.k, own + i * stride, of_k}}, Value{},
            &parts_.right.top);
        prefetch_arguments(graph_, parts_.right, scope);
      });
  }

  /// Processes the elements of a range that a thread sums: first `at_once` loads followed by their adds, then one
  /// load at a time. A load covers `step` elements of the depth; the loads of a thread are `stride` apart. The loads
  /// of the first step may have been issued before (`early`).
  template <class Load, class Add>
  void for_depth(Value count, Value own, int step, std::int64_t stride, const Load& load, const Add& add,
                 const std::vector<Value>& early) {
    const std::int64_t all = stride * plan_.at_once;
    for (std::size_t i = 0; i < early.size(); ++i) add(own + static_cast<int>(i) * stride, Value{}, early[i]);
    const bool is_known = !left_.is_computed() || left_.is_whole();
    const auto depth = is_known ? operands_.k.value() : std::nullopt;
    const Value whole = depth ? b_.index(*depth / all * all) : count - count % all;
    b_.for_loop(b_.index(early.empty() ? 0 : all), whole, all, [&](Value first) {
      std::vector<Value> loaded;
      for (int i = 0; i < plan_.at_once; ++i) loaded.push_back(load(first + (own + i * stride), Value{}));
      for (int i = 0; i < plan_.at_once; ++i) add(first + (own + i * stride), Value{}, loaded[i]);
    });
    if (depth && *depth % all == 0) return;
    b_.for_loop(whole + own, count, stride, [&](Value at) {
      unmasked_or_masked(b_, at, count, step, operands_.k, [&](Value mask) { add(at, mask, load(at, mask)); });
    });
  }

  /// Loads elements of the left operand, `at` after the first one of the range.
  Value load_left(Value batch, int row, Value at, int lanes, Value mask) {
    if (left_.is_computed()) return left_.load(row, at, lanes, mask);
    const ProductParts::Side& left = parts_.left;
    return left.operand.load(left.loads, left.top, batch, b_.index(row), at, LaneAxis::k, lanes, mask);
  }
  Value inside(Value mask, Value value) {
    return mask ? b_.select(mask, value, b_.constant(operands_.compute, 0, plan_.lanes)) : value;
  }

  /// `split` adjacent threads per column.
  void dots(Value batch, const Tiles& tiles) {
    const std::vector<DType> types(static_cast<std::size_t>(rows_), operands_.compute);
    SharedTree tree(b_, is_in_warp() ? std::vector<DType>{} : types, plan_.threads);
    left_.allocate(plan_.threads);
    const auto thread = [&](Value t) {
      if (!starts_in_tile_) start(t, batch);
      tiles([&](Value first_column) { dot(t, batch, first_column, tree); });
    };
    b_.for_loop(0, plan_.threads, 1, thread, LoopKind::thread_x);
  }

  bool is_in_warp() const { return plan_.split <= kernel::warp_threads; }

  void dot(Value t, Value batch, Value first_column, SharedTree& tree) {
    const Value own = t % plan_.split, column = first_column + t / plan_.split;
    const Value here = kernel::min(column, parts_.n - 1);  // all threads take part in the tree
    const std::int64_t stride = std::int64_t{plan_.split} * plan_.lanes;
    const auto load = [&](Value k, Value mask) {
      const ProductParts::Side& right = parts_.right;
      return inside(mask, right.operand.load(right.loads, right.top, batch, here, k, LaneAxis::k, plan_.lanes, mask));
    };
    const std::vector<Value> early = start_tile(t, batch, here, own * plan_.lanes, stride, load);
    const std::vector<Var> sums = zero_vectors(b_, {operands_.compute, plan_.lanes}, rows_);
    for_ranges_of_depth(t, batch, [&](Value first, Value count) {
      for_depth(
          count, own * plan_.lanes, plan_.lanes, stride, [&](Value k, Value mask) { return load(first + k, mask); },
          [&](Value k, Value mask, Value w) {
            for (int r = 0; r < rows_; ++r) {
              const Var sum = sums[r];
              const Value x = inside(mask, load_left(batch, r, k, plan_.lanes, mask));
              b_.set(sum, b_.fma(x, w, b_.get(sum)));
            }
          },
          early);
    });
    std::vector<Value> values;
    for (const Var sum : sums)
      values.push_back(plan_.lanes > 1 ? b_.reduce(ScalarOp::add, b_.get(sum)) : b_.get(sum));
    if (is_in_warp()) {
      for (Value& value : values)
        value = reduce_in_warp(b_, ScalarOp::add, value, t % kernel::warp_threads, plan_.split);
    } else {
      std::vector<std::size_t> which;
      for (std::size_t r = 0; r < values.size(); ++r) which.push_back(r);
      values = tree.reduce(which, std::vector<ScalarOp>(values.size(), ScalarOp::add), values, t, own, plan_.split);
    }
    Value value = values[0];  // of the thread's own row
    for (int r = 1; r < rows_; ++r) value = b_.select(equal(own, r), values[r], value);
    b_.if_(own < rows_, [&] { parts_.finish(batch, own, column, rounded(b_, value, operands_.dtype)); });
  }

  /// `split` threads along the depth per vector of columns; their sums are combined in shared memory.
  void sum_columns(Value batch, const Tiles& tiles) {
    const std::int64_t of_row = std::int64_t{plan_.threads} * plan_.lanes;
    const kernel::Buffer memory = b_.alloc(operands_.compute, of_row * rows_, kernel::Space::shared, "sums");
    left_.allocate(plan_.threads);
    const auto thread = [&](Value t) {
      if (!starts_in_tile_) start(t, batch);
      tiles([&](Value first_column) { sum_vector(t, batch, first_column, memory); });
    };
    b_.for_loop(0, plan_.threads, 1, thread, LoopKind::thread_x);
  }

  void sum_vector(Value t, Value batch, Value first_column, kernel::Buffer memory) {
    const int side = plan_.threads / plan_.split;
    const std::int64_t of_row = std::int64_t{plan_.threads} * plan_.lanes;
    const Value own = t / side, column = first_column + t % side * plan_.lanes;
    const auto load = [&](Value k, Value mask, const ElementwiseEmitter::Scope& of_column) {
      const ProductParts::Side& right = parts_.right;
      return right.operand.load(right.loads, of_column, batch, column, k, LaneAxis::row, plan_.lanes, mask);
    };
    std::optional<ElementwiseEmitter::Scope> early_scope;
    if (loads_early_) early_scope.emplace(scope_of_column(parts_.right, batch, column, plan_.lanes, {}));
    const std::vector<Value> early = start_tile(t, batch, column, own, plan_.split,
                                                [&](Value k, Value mask) { return load(k, mask, *early_scope); });
    const std::vector<Var> sums = zero_vectors(b_, {operands_.compute, plan_.lanes}, rows_);
    for_ranges_of_depth(t, batch, [&](Value first, Value count) {
      const auto add_range = [&](Value mask) {
        const ElementwiseEmitter::Scope of_column =
            early_scope ? *early_scope : scope_of_column(parts_.right, batch, column, plan_.lanes, mask);
        for_depth(
            count, own, 1, plan_.split, [&](Value k, Value) { return load(first + k, mask, of_column); },
            [&](Value k, Value, Value w) {
              for (int r = 0; r < rows_; ++r) {
                const Var sum = sums[r];
                const Value x = b_.broadcast(load_left(batch, r, k, 1, {}), plan_.lanes);
                b_.set(sum, b_.fma(x, w, b_.get(sum)));
              }
            },
            early);
      };
      if (loads_early_) return add_range({});
      b_.if_(column < parts_.n,
             [&] { unmasked_or_masked(b_, column, parts_.n, plan_.lanes, operands_.n, add_range); });
    });
    for (int r = 0; r < rows_; ++r) b_.store(memory, r * of_row + t * plan_.lanes, b_.get(sums[r]));
    const int parts = add_parts(t, memory);
    b_.if_(own < rows_, [&] {
      const Value first = own * of_row + t % side * plan_.lanes;
      Value sum = b_.load(memory, first, plan_.lanes);
      for (int i = 1; i < parts; ++i) sum = sum + b_.load(memory, first + i * columns(), plan_.lanes);
      parts_.finish(batch, own, column, rounded(b_, sum, operands_.dtype));
    });
  }

  /// Adds up the sums that threads have stored for each column, [rows, split, columns], until few parts are left, in
  /// the same memory and layout. Returns their number. All threads add, so that only three barriers are needed.
  int add_parts(Value t, kernel::Buffer memory) {
    const std::int64_t of_row = std::int64_t{plan_.threads} * plan_.lanes;
    const int width = columns(), groups = plan_.threads / width;  // threads that add parts of one column
    b_.barrier();
    const Value column = t % width, group = t / width;
    std::vector<Value> added;
    for (int r = 0; r < rows_; ++r) {
      Value sum = b_.load(memory, r * of_row + t);  // of part `group`
      for (int part = groups; part < plan_.split; part += groups)
        sum = sum + b_.load(memory, r * of_row + (t + part * width));
      added.push_back(reduce_with_partners(b_, ScalarOp::add, sum, t, kernel::warp_threads, width));
    }
    b_.barrier();
    const int together = std::max(1, kernel::warp_threads / width);  // groups in a warp, which have the same sums
    b_.if_(equal(group % together, 0), [&] {
      for (int r = 0; r < rows_; ++r)
        b_.store(memory, r * of_row + group / together * width + column, added[static_cast<std::size_t>(r)]);
    });
    b_.barrier();
    return groups / together;
  }

  const ir::Graph& graph_;
  ProductParts parts_;
  const ProductOperands& operands_;
  kernel::Builder& b_;
  int rows_;
  bool along_k_;
  RowOperand left_;
  GemvPlan plan_;
  bool starts_in_tile_, loads_early_;
};

}  // namespace

bool is_gemv(const GpuContext& context, const Region& region) {
  const ir::Node& contraction = context.graph[region.members[0]];
  if (!is_float(contraction.type.dtype)) return false;
  const auto m = ProductOperands(context, contraction).m.value();
  return m && *m >= 1 && *m <= context.tuned.products.gemv_rows;
}

std::vector<KernelContext::Built> lower_gemv(const GpuContext& context, const Region& region) {
  std::vector<KernelContext::Built> built;
  built.push_back(Gemv(context, region).run());
  if (context.gpu.wgmma && suits_tensor_cores(context, region))
    built[0].launch.info.missed.push_back({Multiplier::wgmma, "its rows are few"});
  return built;
}

}  // namespace lathe::gpu
