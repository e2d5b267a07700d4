#include <optional>

#include "ir/ops/primitives/primitives.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/reduction/recurrence_blocks.h"
#include "passes/lowering/block_sums.h"
#include "passes/lowering/operands/along_dim.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits running sums along the dim. The sum of the blocks before the current one is a BlockTotal.
class ScanKernel {
 public:
  ScanKernel(const GpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        along_(lowering, id),
        context_("cumsum", KernelRole::scan),
        b_(context_.builder),
        out_(lowering.buffer_of(id)),
        compute_(compute_type(along_.node.type.dtype)),
        exclusive_(along_.node.attrs.get<bool>("exclusive")),
        reverse_(along_.node.attrs.get<bool>("reverse")) {}

  KernelContext::Built run() {
    declare_buffers(context_, {&along_.operand.program}, lowering_);
    context_.declare(out_, along_.node.type.dtype, false, true);
    elements_.emplace(context_, along_.operand.program, lowering_.buffer_of);
    size_ = context_.dim(along_.size);
    columns_ = context_.dim(along_.columns);
    along_.post.empty() ? rows() : columns();
    return context_.finish();
  }

 private:
  /// Returns the position in the row of element number `turn`, counted from the end where the sums start.
  Value position(Value turn) const { return reverse_ ? size_ - 1 - turn : turn; }

  Value element(Value pre, Value t, Value column) {
    std::vector<IndexGroup> groups = {{along_.pre, pre, 1}, {{along_.dim}, t, 1}};
    if (!along_.post.empty()) groups.push_back({along_.post, column, 1});
    Scope scope(*elements_, std::move(groups));
    return elements_->emit(along_.operand.result, scope);
  }

  void columns() {
    for_threads(b_, context_.dim(along_.rows) * columns_, 1, [&](Value i) {
      const Value pre = i / columns_, column = i % columns_;
      const Value zero = b_.constant(compute_, 0);
      BlockTotal before(b_, ScalarOp::add, zero);
      const kernel::Var start = b_.var(zero), block = b_.var(zero);
      const auto add = [&](Value turn) {
        const Value t = position(turn), so_far = b_.get(block);
        b_.set(block, so_far + element(pre, t, column));
        store((pre * size_ + t) * columns_ + column, b_.get(start) + (exclusive_ ? so_far : b_.get(block)));
      };
      for_blocks(b_, 0, size_, 1, add, [&] {
        before.add(b_.get(block));
        b_.set(start, before.get());
        b_.set(block, zero);
      });
    });
  }

  /// Processes as many elements as a block has threads, then the next ones.
  void rows() {
    const int threads = block_threads;
    const auto block = [&](Value row) {
      const kernel::Buffer sums = b_.alloc(compute_, threads, kernel::Space::shared, "sums");
      const auto thread = [&](Value x) {
        BlockTotal before(b_, ScalarOp::add, b_.constant(compute_, 0));
        b_.for_loop(0, b_.ceil_div(size_, threads), 1, [&](Value part) {
          const Value turn = part * threads + x, exists = turn < size_;
          const kernel::Var own = b_.var(b_.constant(compute_, 0));
          b_.if_(exists, [&] { b_.set(own, element(row, position(turn), {})); });
          const Sums here = add_up(sums, own, x, threads);
          b_.if_(exists, [&] {
            store(row * size_ + position(turn), before.get() + (exclusive_ ? here.before : b_.get(own)));
          });
          before.add(here.all);
        });
      };
      b_.for_loop(0, threads, 1, thread, LoopKind::thread_x);
    };
    b_.for_loop(0, context_.dim(along_.rows), 1, block, LoopKind::block_x);
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

  void store(Value at, Value sum) { b_.store(context_.buffer(out_), at, b_.cast(sum, along_.node.type.dtype)); }

  const GpuContext& lowering_;
  AlongDim along_;
  KernelContext context_;
  kernel::Builder& b_;
  int out_;
  DType compute_;
  bool exclusive_, reverse_;
  std::optional<ElementwiseEmitter> elements_;
  Value size_, columns_;
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
