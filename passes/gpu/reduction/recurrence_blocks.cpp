#include "passes/gpu/reduction/recurrence_blocks.h"

#include <optional>

#include "passes/gpu/reduction/along_dim_kernel.h"
#include "passes/lowering/operands/recurrence.h"

namespace lathe::gpu {

using kernel::Value;
using kernel::Var;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits a linear recurrence along a dim. The threads of a block compose their steps of a row in shared memory.
class RecurrenceKernel {
 public:
  RecurrenceKernel(const GpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        recurrence_(lowering, id),
        kernel_("recurrence", recurrence_.factors, recurrence_.reverse, lowering.buffer_of(id)),
        b_(kernel_.b) {}

  KernelContext::Built run() {
    const ElementwiseProgram &factors = kernel_.along.operand.program, &terms = recurrence_.terms.program;
    kernel_.declare({&factors, &terms}, lowering_);
    factors_.emplace(kernel_.context, factors, lowering_.buffer_of);
    terms_.emplace(kernel_.context, terms, lowering_.buffer_of);
    return kernel_.loops([&](Value pre, Value column) { run_column(pre, column); },
                         [&](Value row) { return row_of(row); });
  }

 private:
  LinearStep step(Value pre, Value t, Value column) {
    const auto emitted = [&](ElementwiseEmitter& elements, int result) {
      Scope scope(elements, kernel_.along.element(pre, t, column));
      return b_.cast(elements.emit(result, scope), f64);
    };
    const Value factor = emitted(*factors_, kernel_.along.operand.result);
    return {factor, emitted(*terms_, recurrence_.terms.result)};
  }

  void run_column(Value pre, Value column) {
    const Var state = b_.var(b_.constant(f64, 0));
    b_.for_loop(0, kernel_.size, 1, [&](Value turn) {
      const Value t = kernel_.position(turn);
      const LinearStep here = step(pre, t, column);
      b_.set(state, b_.fma(here.factor, b_.get(state), here.term));
      kernel_.store((pre * kernel_.size + t) * kernel_.columns + column, b_.get(state));
    });
  }

  /// Returns what each thread of a block does for a row.
  std::function<void(Value)> row_of(Value row) {
    const kernel::Buffer factors = b_.alloc(f64, block_threads, kernel::Space::shared, "factors"),
                         terms = b_.alloc(f64, block_threads, kernel::Space::shared, "terms");
    return [this, row, factors, terms](Value x) {
      const Var state = b_.var(b_.constant(f64, 0));
      kernel_.for_turns(x, [&](Value turn, Value exists) {
        const Var factor = b_.var(b_.constant(f64, 1)), term = b_.var(b_.constant(f64, 0));
        b_.if_(exists, [&] {
          const LinearStep here = step(row, kernel_.position(turn), {});
          b_.set(factor, here.factor);
          b_.set(term, here.term);
        });
        compose(factors, terms, factor, term, x, block_threads);
        const Value before = b_.get(state);
        b_.if_(exists, [&] {
          kernel_.store(row * kernel_.size + kernel_.position(turn),
                        applied(b_, {b_.get(factor), b_.get(term)}, before));
        });
        b_.set(state, applied(b_, {b_.load(factors, block_threads - 1), b_.load(terms, block_threads - 1)}, before));
        b_.barrier();
      });
    };
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
  AlongDimKernel kernel_;
  kernel::Builder& b_;
  std::optional<ElementwiseEmitter> factors_, terms_;
};

}  // namespace

KernelContext::Built lower_recurrence(const GpuContext& context, ir::ValueId id) {
  return RecurrenceKernel(context, id).run();
}

}  // namespace lathe::gpu
