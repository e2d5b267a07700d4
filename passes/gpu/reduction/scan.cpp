#include <optional>

#include "ir/ops/primitives/primitives.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/reduction/along_dim_kernel.h"
#include "passes/gpu/reduction/recurrence_blocks.h"
#include "passes/lowering/block_sums.h"

namespace lathe::gpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits running sums along the dim. The sum of the blocks before the current one is a BlockTotal.
class ScanKernel {
 public:
  ScanKernel(const GpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        along_(lowering, id),
        kernel_("cumsum", along_, along_.node.attrs.get<bool>("reverse"), lowering.buffer_of(id)),
        b_(kernel_.b),
        compute_(compute_type(along_.node.type.dtype)),
        exclusive_(along_.node.attrs.get<bool>("exclusive")) {}

  KernelContext::Built run() {
    kernel_.declare({&along_.operand.program}, lowering_);
    elements_.emplace(kernel_.context, along_.operand.program, lowering_.buffer_of);
    return kernel_.loops([&](Value pre, Value column) { sum_column(pre, column); },
                         [&](Value row) { return row_of(row); });
  }

 private:
  Value element(Value pre, Value t, Value column) {
    Scope scope(*elements_, along_.element(pre, t, column));
    return elements_->emit(along_.operand.result, scope);
  }

  void sum_column(Value pre, Value column) {
    const Value zero = b_.constant(compute_, 0);
    BlockTotal before(b_, ScalarOp::add, zero);
    const kernel::Var start = b_.var(zero), block = b_.var(zero);
    const auto add = [&](Value turn) {
      const Value t = kernel_.position(turn), so_far = b_.get(block);
      b_.set(block, so_far + element(pre, t, column));
      kernel_.store((pre * kernel_.size + t) * kernel_.columns + column,
                    b_.get(start) + (exclusive_ ? so_far : b_.get(block)));
    };
    for_blocks(b_, 0, kernel_.size, 1, add, [&] {
      before.add(b_.get(block));
      b_.set(start, before.get());
      b_.set(block, zero);
    });
  }

  /// Returns what each thread of a block does for a row.
  std::function<void(Value)> row_of(Value row) {
    const kernel::Buffer sums = b_.alloc(compute_, block_threads, kernel::Space::shared, "sums");
    return [this, row, sums](Value x) {
      BlockTotal before(b_, ScalarOp::add, b_.constant(compute_, 0));
      kernel_.for_turns(x, [&](Value turn, Value exists) {
        const kernel::Var own = b_.var(b_.constant(compute_, 0));
        b_.if_(exists, [&] { b_.set(own, element(row, kernel_.position(turn), {})); });
        const Sums here = add_up(sums, own, x, block_threads);
        b_.if_(exists, [&] {
          kernel_.store(row * kernel_.size + kernel_.position(turn),
                        before.get() + (exclusive_ ? here.before : b_.get(own)));
        });
        before.add(here.all);
      });
    };
  }

  /// The sums of the threads before this one, and of all threads.
  struct Sums {
    Value before, all;
  };
  /// Adds the values of the threads before it to each thread's value.
  Sums add_up(kernel::Buffer sums, kernel::Var own, Value x, int threads) {
    for (int step = 1; step < threads; step *= 2) {
      b_.store(sums, x, b_.get(own));
      b_.barrier();
      b_.if_(b_.index(step) <= x, [&] { b_.set(own, b_.load(sums, x - step) + b_.get(own)); });
      b_.barrier();
    }
    b_.store(sums, x, b_.get(own));
    b_.barrier();
    const Value left = b_.load(sums, kernel::max(x - 1, 0)), all = b_.load(sums, threads - 1);
    b_.barrier();
    return {b_.select(b_.index(0) < x, left, b_.constant(compute_, 0)), all};
  }

  const GpuContext& lowering_;
  AlongDim along_;
  AlongDimKernel kernel_;
  kernel::Builder& b_;
  DType compute_;
  bool exclusive_;
  std::optional<ElementwiseEmitter> elements_;
};

}  // namespace

std::vector<KernelContext::Built> lower_scan(const GpuContext& context, const Region& region) {
  const ir::ValueId id = region.members[0];
  std::vector<KernelContext::Built> built;
  built.push_back(context.graph[id].op == &ir::ops::linear_recurrence ? lower_recurrence(context, id)
                                                                      : ScanKernel(context, id).run());
  return built;
}

}  // namespace lathe::gpu
