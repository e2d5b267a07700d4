#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/product_operands.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using schedule::LaneAxis;
using Scope = PointEmitter::Scope;

namespace {

constexpr int tile = 64, depth = 16, side = 16, own = 4;  // a block's tile; threads along it; a thread's part

class ProductKernel {
 public:
  ProductKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        operands_(lowering, lowering.graph[region.members[0]]),
        context_("product"),
        b_(context_.builder),
        program_(region_program(lowering.graph, lowering.plan, region)),
        epilogue_(context_, program_, lowering.buffer_of) {}

  KernelContext::Built run() {
    declare_buffers(context_, {&program_, &operands_.left.operand.program, &operands_.right.operand.program},
                    lowering_);
    PointEmitter left(context_, operands_.left.operand.program, lowering_.buffer_of);
    PointEmitter right(context_, operands_.right.operand.program, lowering_.buffer_of);
    Scope top(epilogue_, {}), left_top(left, {}), right_top(right, {});
    epilogue_.hoist(top);
    left.hoist(left_top);
    right.hoist(right_top);
    const Dim &batch = operands_.batch, &m = operands_.m, &n = operands_.n, &k = operands_.k;
    m_ = context_.dim(m), n_ = context_.dim(n), k_ = context_.dim(k);
    const Value down = b_.ceil_div(m_, tile), across = b_.ceil_div(n_, tile);
    const auto block = [&](Value i) {
      const Value first_n = i % across * tile, first_m = i / across % down * tile, at_batch = i / across / down;
      const kernel::Buffer a = b_.alloc(operands_.compute, tile * depth, kernel::Space::shared, "left");
      const kernel::Buffer c = b_.alloc(operands_.compute, tile * depth, kernel::Space::shared, "right");
      const auto thread = [&](Value y, Value x) {
        std::vector<kernel::Var> sums;
        for (int r = 0; r < own; ++r)
          sums.push_back(b_.var({operands_.compute, own}, b_.constant(operands_.compute, 0)));
        b_.for_loop(0, k_, depth, [&](Value first_k) {
          const Value slot = y * side + x;
          fill(a, operands_.left, left, left_top, at_batch, first_m, m, first_k, slot);
          fill(c, operands_.right, right, right_top, at_batch, first_n, n, first_k, slot);
          b_.barrier();
          b_.for_loop(0, depth, 1, [&](Value kk) { multiply(a, c, kk, x, y, sums); }, LoopKind::unroll);
          b_.barrier();
        });
        finish(at_batch, first_m + y * own, first_n + x * own, n, sums, top);
      };
      b_.for_loop(
          0, side, 1, [&](Value y) { b_.for_loop(0, side, 1, [&](Value x) { thread(y, x); }, LoopKind::thread_x); },
          LoopKind::thread_y);
    };
    b_.for_loop(0, context_.dim(batch) * down * across, 1, block, LoopKind::block_x);
    auto built = context_.finish();
    built.launch.flops = Dim(2) * batch * m * n * k;
    return built;
  }

 private:
  /// Brings [first_k, + depth) of 64 rows of an operand to shared memory, as [k][row]; zeros beyond the ends. Each
  /// thread brings 4 elements that are neighbours in memory.
  void fill(kernel::Buffer to, const ProductOperand& o, PointEmitter& emitter, Scope& top, Value batch,
            Value first_row, const Dim& size, Value first_k, Value slot) {
    const bool along_k = o.axis == LaneAxis::k;
    const int pieces = (along_k ? depth : tile) / own;
    const Value along = slot % pieces * own, other = slot / pieces;
    const Value row = first_row + (along_k ? other : along), k = first_k + (along_k ? along : other);
    const Value rows = context_.dim(size);
    const DType compute = operands_.compute;
    const auto load = [&](Value mask) {
      const Value value = o.load(emitter, top, batch, row, k, o.axis, own, mask);
      return mask ? b_.select(mask, value, b_.constant(compute, 0, own)) : value;
    };
    const kernel::Var piece = b_.var({compute, own}, b_.constant(compute, 0));
    b_.if_(row < rows && k < k_, [&] {
      unmasked_or_masked(b_, along_k ? k : row, along_k ? k_ : rows, own, along_k ? operands_.k : size,
                         [&](Value mask) { b_.set(piece, load(mask)); });
    });
    if (along_k)
      b_.store_strided(to, along * tile + other, tile, b_.get(piece));
    else
      b_.store(to, other * tile + along, b_.get(piece));
  }

  void multiply(kernel::Buffer a, kernel::Buffer c, Value k, Value x, Value y, const std::vector<kernel::Var>& sums) {
    const Value rows = b_.load(a, k * tile + y * own, own), columns = b_.load(c, k * tile + x * own, own);
    for (int r = 0; r < own; ++r) {
      const Value factor = b_.broadcast(b_.extract(rows, r), own);
      const auto& sum = sums[static_cast<std::size_t>(r)];
      const bool fused = operands_.compute == f32 || operands_.compute == f64;
      b_.set(sum, fused ? b_.fma(factor, columns, b_.get(sum)) : b_.get(sum) + factor * columns);
    }
  }

  /// Rounds to the result's dtype and runs the epilogue, row by row.
  void finish(Value batch, Value first_m, Value n, const Dim& width, const std::vector<kernel::Var>& sums,
              Scope& top) {
    const DType dtype = operands_.dtype, compute = operands_.compute;
    for (int r = 0; r < own; ++r) {
      const Value m = first_m + r;
      b_.if_(m < m_ && n < n_, [&] {
        const Value sum = b_.get(sums[static_cast<std::size_t>(r)]);
        unmasked_or_masked(b_, n, n_, own, width, [&](Value mask) {
          Scope scope(epilogue_,
                      {{operands_.batch_dims, batch, 1}, {operands_.m_dims, m, 1}, {operands_.n_dims, n, own}}, mask,
                      &top);
          scope.bind(0, compute == dtype ? sum : b_.cast(b_.cast(sum, dtype), compute));
          epilogue_.store_all(scope);
        });
      });
    }
  }

  const LoweringContext& lowering_;
  ProductOperands operands_;
  KernelContext context_;
  kernel::Builder& b_;
  PointProgram program_;
  PointEmitter epilogue_;
  Value m_, n_, k_;
};

}  // namespace

KernelContext::Built lower_product(const LoweringContext& context, const Region& region) {
  return ProductKernel(context, region).run();
}

}  // namespace lathe::gpu
