#include <algorithm>
#include <optional>

#include "ir/ops/primitives/primitives.h"
#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/rows/recurrence_kernel.h"
#include "passes/cpu/rows/shift_lanes.h"
#include "passes/lowering/block_sums.h"
#include "passes/lowering/operands/along_dim.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits running sums along a dim. With dims after it, each lane sums its own column. Otherwise a vector holds
/// consecutive elements of one row: shifts compute its running sums, and the sums of the preceding vectors are added.
/// The sum of all preceding blocks of up to `block_terms` terms is a BlockTotal.
class ScanKernel {
 public:
  ScanKernel(const CpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        along_(lowering, id),
        context_("cumsum", KernelRole::scan),
        b_(context_.builder),
        out_(lowering.buffer_of(id)),
        lanes_(program_lanes(along_.operand.program, lowering.vectors())),
        compute_(compute_type(along_.node.type.dtype)),
        exclusive_(along_.node.attrs.get<bool>("exclusive")),
        reverse_(along_.node.attrs.get<bool>("reverse")) {}

  KernelContext::Built run() {
    declare_buffers(context_, {&along_.operand.program}, lowering_);
    context_.declare(out_, along_.node.type.dtype, false, true);
    ElementwiseEmitter elements(context_, along_.operand.program, lowering_.buffer_of);
    size_ = context_.dim(along_.size);
    columns_ = context_.dim(along_.columns);
    along_.post.empty() ? rows(elements) : columns(elements);
    auto built = context_.finish();
    built.launch.work = along_.size * (along_.post.empty() ? Dim(1) : Dim(task_columns()));
    return built;
  }

 private:
  void rows(ElementwiseEmitter& elements) {
    const int vectors = vectors_of_block();
    const Value blocks = b_.ceil_div(size_, vectors * lanes_), whole = size_ / (vectors * lanes_);
    b_.parallel_for(0, context_.dim(along_.rows), 1, [&](Value row) {
      BlockTotal before(b_, ScalarOp::add, b_.constant(compute_, 0));
      const auto block_of = [&](Value turn, bool is_whole) {
        const Value start = b_.broadcast(before.get(), lanes_);
        std::optional<Value> block;  // the sum of this block's preceding vectors
        for (int v = 0; v < vectors; ++v) {
          const Value number = turn * vectors + v;
          const Value at = (reverse_ ? blocks * vectors - 1 - number : number) * lanes_;
          const Value mask = is_whole ? Value{} : b_.tail_mask(size_ - at, lanes_);
          const Value sums = sums_of(elements, row, at, mask);
          Value result = exclusive_ ? shifted(sums, 1) : sums;
          if (block) result = result + b_.broadcast(*block, lanes_);
          b_.store(context_.buffer(out_), row * size_ + at, b_.cast(result + start, along_.node.type.dtype), mask);
          const Value own = lanes_ == 1 ? sums : b_.extract(sums, reverse_ ? 0 : lanes_ - 1);
          block = block ? *block + own : own;
        }
        before.add(*block);
      };
      // The last block of a row may be shorter; in reverse, it comes first.
      const auto run = [&](Value first, Value end, bool is_whole) {
        if (b_.constant_value(end - first) != 0)
          b_.for_loop(first, end, 1, [&](Value turn) { block_of(turn, is_whole); });
      };
      const Value rest = blocks - whole, none = b_.index(0);
      if (reverse_) run(none, rest, false);
      run(reverse_ ? rest : none, reverse_ ? blocks : whole, true);
      if (!reverse_) run(whole, blocks, false);
    });
  }

  /// Returns the number of vectors that are added in f32 before their sum is added to the total.
  int vectors_of_block() const {
    constexpr std::int64_t most = 4;
    const std::int64_t needed = (along_.size.value().value_or(block_terms) + lanes_ - 1) / lanes_;
    return static_cast<int>(std::clamp<std::int64_t>(std::min(block_terms / lanes_, needed), 1, most));
  }

  /// Returns the running sums within one vector; 0 in lanes without an element.
  Value sums_of(ElementwiseEmitter& elements, Value row, Value at, Value mask) {
    Scope scope(elements, {{along_.pre, row, 1}, {{along_.dim}, at, lanes_}}, mask);
    Value sums = b_.broadcast(elements.emit(along_.operand.result, scope), lanes_);
    if (mask) sums = b_.select(mask, sums, b_.constant(compute_, 0, lanes_));
    for (int step = 1; step < lanes_; step *= 2) sums = sums + shifted(sums, step);
    return sums;
  }

  /// Moves to each lane the value `step` lanes before it, or after it in reverse; 0 if there is no such lane.
  Value shifted(Value vector, int step) {
    const Value zeros = b_.constant(compute_, 0, lanes_);
    if (lanes_ == 1) return zeros;
    return shift_lanes(b_, vector, zeros, step, reverse_);
  }

  /// Columns per task.
  std::int64_t task_columns() const { return lowering_.tuned.loops.scan_task_vectors * lanes_; }

  void columns(ElementwiseEmitter& elements) {
    const std::int64_t width = task_columns();
    const Value blocks = b_.ceil_div(columns_, width);
    b_.parallel_for(0, context_.dim(along_.rows) * blocks, 1, [&](Value task) {
      const Value pre = task / blocks, lo = task % blocks * width;
      vector_loop(b_, lo, kernel::min(lo + width, columns_), lanes_, [&](Value column, Value mask) {
        const Value zeros = b_.constant(compute_, 0, lanes_);
        BlockTotal before(b_, ScalarOp::add, zeros);
        const kernel::Var start = b_.var(zeros), block = b_.var(zeros);
        const auto add = [&](Value turn) {
          const Value t = reverse_ ? size_ - 1 - turn : turn;
          Scope scope(elements, {{along_.pre, pre, 1}, {{along_.dim}, t, 1}, {along_.post, column, lanes_}}, mask);
          const Value so_far = b_.get(block);
          b_.set(block, so_far + b_.broadcast(elements.emit(along_.operand.result, scope), lanes_));
          b_.store(context_.buffer(out_), (pre * size_ + t) * columns_ + column,
                   b_.cast(b_.get(start) + (exclusive_ ? so_far : b_.get(block)), along_.node.type.dtype), mask);
        };
        for_blocks(b_, 0, size_, 1, add, [&] {
          before.add(b_.get(block));
          b_.set(start, before.get());
          b_.set(block, zeros);
        });
      });
    });
  }

  const CpuContext& lowering_;
  AlongDim along_;
  KernelContext context_;
  kernel::Builder& b_;
  int out_, lanes_;
  DType compute_;
  bool exclusive_, reverse_;
  Value size_, columns_;
};

}  // namespace

std::vector<KernelContext::Built> lower_scan(const CpuContext& context, const Region& region) {
  const ir::ValueId id = region.members[0];
  std::vector<KernelContext::Built> built;
  built.push_back(context.graph[id].op == &ir::ops::linear_recurrence ? lower_recurrence(context, id)
                                                                      : ScanKernel(context, id).run());
  return built;
}

}  // namespace lathe::cpu
