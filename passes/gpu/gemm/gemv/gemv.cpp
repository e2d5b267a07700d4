#include "passes/gpu/gemm/gemv/gemv.h"

#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "passes/gpu/program_vectors.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Position = ProductParts::Position;

namespace {

/// GEMV: the threads mainly read the right operand, from adjacent addresses, with several loads in
/// flight each. The few rows of the left operand come from caches.
class Gemv {
 public:
  Gemv(const GpuContext& lowering, const Region& region)
      : parts_(lowering, region),
        operands_(parts_.operands),
        b_(parts_.builder()),
        rows_(static_cast<int>(*operands_.m.value())),
        along_k_(parts_.right.along_k()),
        plan_(plan(lowering)) {}

  KernelContext::Built run() {
    const int columns = plan_.threads / plan_.split * (along_k_ ? 1 : plan_.lanes);
    return parts_.tiles(rows_, columns, [&](const Position& at) { along_k_ ? dots(at) : sum_columns(at); });
  }

 private:
  GemvPlan plan(const GpuContext& lowering) const {
    const GpuInfo& gpu = lowering.gpu;
    const ProductOperands& o = operands_;
    const int lanes = program_vectors(o.right.operand.program, gpu.vectors).lanes(o.compute);
    const auto bytes = static_cast<int>(size_in_bytes(o.compute));
    return along_k_ ? plan_dots(gpu, lanes, (o.batch * o.n).value(), o.k.value())
                    : plan_columns(gpu, lanes, rows_, bytes, o.batch.value(), o.n.value(), o.k.value());
  }

  /// Processes everything that a thread sums: first `at_once` loads followed by their adds, then one load at a time.
  /// A load covers `step` elements of the depth; the loads of a thread are `stride` apart.
  template <class Load, class Add>
  void for_depth(Value own, int step, std::int64_t stride, const Load& load, const Add& add) {
    const std::int64_t all = stride * plan_.at_once;
    const auto depth = operands_.k.value();
    const Value whole = depth ? b_.index(*depth / all * all) : parts_.k - parts_.k % all;
    b_.for_loop(b_.index(0), whole, all, [&](Value first) {
      std::vector<Value> loaded;
      for (int i = 0; i < plan_.at_once; ++i) loaded.push_back(load(first + (own + i * stride), Value{}));
      for (int i = 0; i < plan_.at_once; ++i) add(first + (own + i * stride), Value{}, loaded[i]);
    });
    if (depth && *depth % all == 0) return;
    b_.for_loop(whole + own, parts_.k, stride, [&](Value at) {
      unmasked_or_masked(b_, at, parts_.k, step, operands_.k, [&](Value mask) { add(at, mask, load(at, mask)); });
    });
  }

  Value load_left(Value batch, int row, Value at, int lanes, Value mask) {
    const ProductParts::Side& left = parts_.left;
    return left.operand.load(left.loads, left.top, batch, b_.index(row), at, LaneAxis::k, lanes, mask);
  }
  Value load_right(Value batch, Value column, Value at, LaneAxis axis, Value mask) {
    const ProductParts::Side& right = parts_.right;
    return right.operand.load(right.loads, right.top, batch, column, at, axis, plan_.lanes, mask);
  }
  Value inside(Value mask, Value value) {
    return mask ? b_.select(mask, value, b_.constant(operands_.compute, 0, plan_.lanes)) : value;
  }

  /// `split` adjacent threads per column.
  void dots(const Position& at) {
    const std::vector<DType> types(static_cast<std::size_t>(rows_), operands_.compute);
    const bool in_warp = plan_.split <= kernel::warp_threads;
    SharedTree tree(b_, in_warp ? std::vector<DType>{} : types, plan_.threads);
    const auto thread = [&](Value t) {
      const Value own = t % plan_.split, column = at.n + t / plan_.split;
      const Value here = kernel::min(column, parts_.n - 1);  // all threads take part in the tree
      const std::vector<Var> sums = zero_vectors(b_, {operands_.compute, plan_.lanes}, rows_);
      for_depth(
          own * plan_.lanes, plan_.lanes, std::int64_t{plan_.split} * plan_.lanes,
          [&](Value k, Value mask) { return inside(mask, load_right(at.batch, here, k, LaneAxis::k, mask)); },
          [&](Value k, Value mask, Value w) {
            for (int r = 0; r < rows_; ++r) {
              const Var sum = sums[r];
              const Value x = inside(mask, load_left(at.batch, r, k, plan_.lanes, mask));
              b_.set(sum, b_.fma(x, w, b_.get(sum)));
            }
          });
      std::vector<Value> values;
      for (const Var sum : sums)
        values.push_back(plan_.lanes > 1 ? b_.reduce(ScalarOp::add, b_.get(sum)) : b_.get(sum));
      if (in_warp) {
        for (Value& value : values)
          value = reduce_in_warp(b_, ScalarOp::add, value, t % kernel::warp_threads, plan_.split);
      } else {
        std::vector<std::size_t> which;
        for (std::size_t r = 0; r < values.size(); ++r) which.push_back(r);
        values = tree.reduce(which, std::vector<ScalarOp>(values.size(), ScalarOp::add), values, t, own, plan_.split);
      }
      Value value = values[0];  // of the thread's own row
      for (int r = 1; r < rows_; ++r) value = b_.select(equal(own, r), values[r], value);
      b_.if_(own < rows_, [&] { parts_.finish(at.batch, own, column, rounded(b_, value, operands_.dtype)); });
    };
    b_.for_loop(0, plan_.threads, 1, thread, LoopKind::thread_x);
  }

  /// `split` threads along the depth per vector of columns; their sums are combined in shared memory.
  void sum_columns(const Position& at) {
    const int side = plan_.threads / plan_.split;
    const std::int64_t of_row = std::int64_t{plan_.threads} * plan_.lanes;
    const kernel::Buffer memory = b_.alloc(operands_.compute, of_row * rows_, kernel::Space::shared, "sums");
    const auto thread = [&](Value t) {
      const Value own = t / side, column = at.n + t % side * plan_.lanes;
      const std::vector<Var> sums = zero_vectors(b_, {operands_.compute, plan_.lanes}, rows_);
      b_.if_(column < parts_.n, [&] {
        unmasked_or_masked(b_, column, parts_.n, plan_.lanes, operands_.n, [&](Value mask) {
          for_depth(
              own, 1, plan_.split,
              [&](Value k, Value) { return load_right(at.batch, column, k, LaneAxis::row, mask); },
              [&](Value k, Value, Value w) {
                for (int r = 0; r < rows_; ++r) {
                  const Var sum = sums[r];
                  const Value x = b_.broadcast(load_left(at.batch, r, k, 1, {}), plan_.lanes);
                  b_.set(sum, b_.fma(x, w, b_.get(sum)));
                }
              });
        });
      });
      const auto place = [&](Value of_thread, int row) { return row * of_row + of_thread * plan_.lanes; };
      for (int r = 0; r < rows_; ++r) b_.store(memory, place(t, r), b_.get(sums[r]));
      for (int half = plan_.split / 2; half >= 1; half /= 2) {
        b_.barrier();
        b_.if_(own < half, [&] {
          for (int r = 0; r < rows_; ++r) {
            const Value upper = b_.load(memory, place(t + half * side, r), plan_.lanes);
            b_.store(memory, place(t, r), b_.load(memory, place(t, r), plan_.lanes) + upper);
          }
        });
      }
      b_.barrier();
      b_.if_(own < rows_, [&] {
        const Value sum = b_.load(memory, own * of_row + t % side * plan_.lanes, plan_.lanes);
        parts_.finish(at.batch, own, column, rounded(b_, sum, operands_.dtype));
      });
    };
    b_.for_loop(0, plan_.threads, 1, thread, LoopKind::thread_x);
  }

  ProductParts parts_;
  const ProductOperands& operands_;
  kernel::Builder& b_;
  int rows_;
  bool along_k_;
  GemvPlan plan_;
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
