#include "passes/gpu/reduction/recurrence_blocks.h"

#include <optional>

#include "passes/lowering/operands/recurrence.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using kernel::Var;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits a linear recurrence along a dim: one column per thread. If no dims follow, one row per block: its threads
/// take one step each and compose them in shared memory.
class RecurrenceKernel {
 public:
  RecurrenceKernel(const GpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        recurrence_(lowering, id),
        context_("recurrence", KernelRole::scan),
        b_(context_.builder),
        out_(lowering.buffer_of(id)) {}

  KernelContext::Built run() {
    const ElementwiseProgram &factors = along().operand.program, &terms = recurrence_.terms.program;
    declare_buffers(context_, {&factors, &terms}, lowering_);
    context_.declare(out_, along().node.type.dtype, false, true);
    factors_.emplace(context_, factors, lowering_.buffer_of);
    terms_.emplace(context_, terms, lowering_.buffer_of);
    size_ = context_.dim(along().size);
    columns_ = context_.dim(along().columns);
    along().post.empty() ? rows() : columns();
    return context_.finish();
  }

 private:
  const AlongDim& along() const { return recurrence_.factors; }
  Value position(Value turn) const { return recurrence_.reverse ? size_ - 1 - turn : turn; }

  LinearStep step(Value pre, Value t, Value column) {
    std::vector<IndexGroup> groups = {{along().pre, pre, 1}, {{along().dim}, t, 1}};
    if (!along().post.empty()) groups.push_back({along().post, column, 1});
    const auto emitted = [&](ElementwiseEmitter& elements, int result) {
      Scope scope(elements, groups);
      return b_.cast(elements.emit(result, scope), f64);
    };
    const Value factor = emitted(*factors_, along().operand.result);
    return {factor, emitted(*terms_, recurrence_.terms.result)};
  }

  void store(Value at, Value state) { b_.store(context_.buffer(out_), at, b_.cast(state, along().node.type.dtype)); }

  void columns() {
    for_threads(b_, context_.dim(along().rows) * columns_, 1, [&](Value i) {
      const Value pre = i / columns_, column = i % columns_;
      const Var state = b_.var(b_.constant(f64, 0));
      b_.for_loop(0, size_, 1, [&](Value turn) {
        const Value t = position(turn);
        const LinearStep here = step(pre, t, column);
        b_.set(state, b_.fma(here.factor, b_.get(state), here.term));
        store((pre * size_ + t) * columns_ + column, b_.get(state));
      });
    });
  }

  /// Processes as many steps as a block has threads, then the next ones.
  void rows() {
    const int threads = block_threads;
    const auto block = [&](Value row) {
      const kernel::Buffer factors = b_.alloc(f64, threads, kernel::Space::shared, "factors"),
                           terms = b_.alloc(f64, threads, kernel::Space::shared, "terms");
      const auto thread = [&](Value x) {
        const Var state = b_.var(b_.constant(f64, 0));
        b_.for_loop(0, b_.ceil_div(size_, threads), 1, [&](Value part) {
          const Value turn = part * threads + x, exists = turn < size_;
          const Var factor = b_.var(b_.constant(f64, 1)), term = b_.var(b_.constant(f64, 0));
          b_.if_(exists, [&] {
            const LinearStep here = step(row, position(turn), {});
            b_.set(factor, here.factor);
            b_.set(term, here.term);
          });
          compose(factors, terms, factor, term, x, threads);
          const Value before = b_.get(state);
          b_.if_(exists,
                 [&] { store(row * size_ + position(turn), applied(b_, {b_.get(factor), b_.get(term)}, before)); });
          b_.set(state, applied(b_, {b_.load(factors, threads - 1), b_.load(terms, threads - 1)}, before));
          b_.barrier();
        });
      };
      b_.for_loop(0, threads, 1, thread, LoopKind::thread_x);
    };
    b_.for_loop(0, context_.dim(along().rows), 1, block, LoopKind::block_x);
  }

  /// Composes each thread's step with those of all threads before it. The shared memory has all results at the end.
  void compose(kernel::Buffer factors, kernel::Buffer terms, Var factor, Var term, Value x, int threads) {
    const auto publish = [&] {
      b_.store(factors, x, b_.get(factor));
      b_.store(terms, x, b_.get(term));
      b_.barrier();
    };
    for (int distance = 1; distance < threads; distance *= 2) {
      publish();
      b_.if_(b_.index(distance) <= x, [&] {
        const LinearStep before = {b_.load(factors, x - distance), b_.load(terms, x - distance)};
        const LinearStep both = composed(b_, before, {b_.get(factor), b_.get(term)});
        b_.set(factor, both.factor);
        b_.set(term, both.term);
      });
      b_.barrier();
    }
    publish();
  }

  const GpuContext& lowering_;
  Recurrence recurrence_;
  KernelContext context_;
  kernel::Builder& b_;
  int out_;
  std::optional<ElementwiseEmitter> factors_, terms_;
  Value size_, columns_;
};

}  // namespace

KernelContext::Built lower_recurrence(const GpuContext& context, ir::ValueId id) {
  return RecurrenceKernel(context, id).run();
}

}  // namespace lathe::gpu
