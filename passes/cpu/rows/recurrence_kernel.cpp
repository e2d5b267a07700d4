#include "passes/cpu/rows/recurrence_kernel.h"

#include <algorithm>
#include <optional>

#include "passes/cpu/rows/shift_lanes.h"
#include "passes/lowering/operands/recurrence.h"

namespace lathe::cpu {

using kernel::Value;
using kernel::Var;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits a linear recurrence along a dim. With dims after it, each lane has the state of its own column. Otherwise a
/// vector holds consecutive steps of one row: shifts compose them, and the state before them is the input of all.
class RecurrenceKernel {
 public:
  RecurrenceKernel(const CpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        recurrence_(lowering, id),
        context_("recurrence", KernelRole::scan),
        b_(context_.builder),
        out_(lowering.buffer_of(id)) {
    const VectorRegisters& vectors = lowering.vectors();
    lanes_ =
        std::min(program_lanes(along().operand.program, vectors), program_lanes(recurrence_.terms.program, vectors));
    if (along().post.empty()) lanes_ = composes_steps() ? std::min(lanes_, vectors.lanes(f64)) : 1;
  }

  KernelContext::Built run() {
    const ElementwiseProgram &factors = along().operand.program, &terms = recurrence_.terms.program;
    declare_buffers(context_, {&factors, &terms}, lowering_);
    context_.declare(out_, along().node.type.dtype, false, true);
    factors_.emplace(context_, factors, lowering_.buffer_of);
    terms_.emplace(context_, terms, lowering_.buffer_of);
    size_ = context_.dim(along().size);
    columns_ = context_.dim(along().columns);
    along().post.empty() ? rows() : columns();
    auto built = context_.finish();
    built.launch.work = along().size * (along().post.empty() ? Dim(1) : Dim(task_columns()));
    return built;
  }

 private:
  const AlongDim& along() const { return recurrence_.factors; }
  /// The product of a vector's factors fits an f64 if they are numbers of up to 32 bits. Factors in f64 are applied
  /// in sequence.
  bool composes_steps() const { return along().node.type.dtype != f64; }

  Value position(Value turn) const { return recurrence_.reverse ? size_ - 1 - turn : turn; }

  LinearStep step(std::vector<IndexGroup> groups, Value mask) {
    const auto emitted = [&](ElementwiseEmitter& elements, int result) {
      Scope scope(elements, groups, mask);
      return b_.cast(b_.broadcast(elements.emit(result, scope), lanes_), f64);
    };
    const Value factor = emitted(*factors_, along().operand.result);
    return {factor, emitted(*terms_, recurrence_.terms.result)};
  }

  void store(Value at, Value state, Value mask) {
    b_.store(context_.buffer(out_), at, b_.cast(state, along().node.type.dtype), mask);
  }

  void columns() {
    const std::int64_t width = task_columns();
    const Value blocks = b_.ceil_div(columns_, width);
    b_.parallel_for(0, context_.dim(along().rows) * blocks, 1, [&](Value task) {
      const Value pre = task / blocks, lo = task % blocks * width;
      vector_loop(b_, lo, kernel::min(lo + width, columns_), lanes_, [&](Value column, Value mask) {
        const Var state = b_.var(b_.constant(f64, 0, lanes_));
        b_.for_loop(0, size_, 1, [&](Value turn) {
          const Value t = position(turn);
          const LinearStep here =
              step({{along().pre, pre, 1}, {{along().dim}, t, 1}, {along().post, column, lanes_}}, mask);
          b_.set(state, b_.fma(here.factor, b_.get(state), here.term));
          store((pre * size_ + t) * columns_ + column, b_.get(state), mask);
        });
      });
    });
  }

  void rows() {
    const Value vectors = b_.ceil_div(size_, lanes_);
    b_.parallel_for(0, context_.dim(along().rows), 1, [&](Value row) {
      const Var state = b_.var(b_.constant(f64, 0));
      b_.for_loop(0, vectors, 1, [&](Value turn) {
        const Value at = (recurrence_.reverse ? vectors - 1 - turn : turn) * lanes_;
        const Value mask = b_.tail_mask(size_ - at, lanes_);
        const LinearStep steps = prefixes(row, at, mask);
        const Value states = lanes_ == 1 ? b_.fma(steps.factor, b_.get(state), steps.term)
                                         : applied(b_, steps, b_.broadcast(b_.get(state), lanes_));
        store(row * size_ + at, states, mask);
        b_.set(state, lanes_ == 1 ? states : b_.extract(states, recurrence_.reverse ? 0 : lanes_ - 1));
      });
    });
  }

  /// Returns for each lane all steps of the vector up to its own, composed. Lanes without an element do nothing.
  LinearStep prefixes(Value row, Value at, Value mask) {
    LinearStep steps = step({{along().pre, row, 1}, {{along().dim}, at, lanes_}}, mask);
    if (lanes_ == 1) return steps;
    steps.factor = b_.select(mask, steps.factor, b_.constant(f64, 1, lanes_));
    steps.term = b_.select(mask, steps.term, b_.constant(f64, 0, lanes_));
    for (int distance = 1; distance < lanes_; distance *= 2)
      steps = composed(b_, {shifted(steps.factor, distance, 1), shifted(steps.term, distance, 0)}, steps);
    return steps;
  }

  /// Lanes that get no value get `fill`.
  Value shifted(Value vector, int distance, int fill) {
    return shift_lanes(b_, vector, b_.constant(f64, fill, lanes_), distance, recurrence_.reverse);
  }

  /// Columns per task.
  std::int64_t task_columns() const { return lowering_.tuned.loops.scan_task_vectors * lanes_; }

  const CpuContext& lowering_;
  Recurrence recurrence_;
  KernelContext context_;
  kernel::Builder& b_;
  int out_, lanes_ = 1;
  std::optional<ElementwiseEmitter> factors_, terms_;
  Value size_, columns_;
};

}  // namespace

KernelContext::Built lower_recurrence(const CpuContext& context, ir::ValueId id) {
  return RecurrenceKernel(context, id).run();
}

}  // namespace lathe::cpu
