#include "passes/gpu/attention/attention_known_rows.h"

namespace lathe::gpu {

using kernel::Value;

namespace {

std::vector<int> summed_values(const ElementwiseProgram& program, const std::vector<ElementwiseStore>& sums) {
  std::vector<int> found;
  for (const ElementwiseStore& sum : sums) found.push_back(program[sum.value].args[0]);
  return found;
}

/// Sums over outer dims: a block per tile of rows and columns iterates over these dims in order, with its sums in
/// registers.
class OuterReductions {
 public:
  OuterReductions(const AttentionPlan& plan, const std::vector<ElementwiseStore>& sums)
      : plan_(plan),
        sums_(sums),
        values_(summed_values(plan.attention.program, sums)),
        block_(plan, {}, sums, "attention_outer_reductions", KernelRole::attention_outer_reductions),
        known_(plan, block_, values_),
        b_(block_.b),
        span_(plan.tile.span()),
        own_(plan.tile.own()) {
    const std::uint64_t depends = plan.attention.program.depends[sums[0].value];
    for (const int d : plan.attention.parts.outer) ((depends >> d & 1) != 0 ? kept_ : summed_).push_back(d);
  }

  KernelContext::Built run() {
    block_.begin({}, buffers_of_known_rows(plan_));
    const ElementwiseProgram& program = block_.program;
    const Value across = b_.ceil_div(block_.column_count, span_),
                tiles = b_.ceil_div(block_.row_count, span_) * across;
    const auto block = [&](Value i) {
      const Value kept = i / tiles, row = i % tiles / across * span_, column = i % across * span_;
      block_.threads(b_.index(0), [&](const AttentionThread& thread) { tile(kept, row, column, thread); });
    };
    b_.for_loop(0, block_.context.dim(program.points(kept_)) * tiles, 1, block, kernel::LoopKind::block_x);
    auto built = block_.context.finish();
    Dim depth(0);
    for (const auto& score : plan_.attention.parts.scores) depth = depth + score.depth;
    built.launch.flops = plan_.attention.flops(depth);
    return built;
  }

 private:
  using Scope = ElementwiseEmitter::Scope;

  void tile(Value kept, Value row, Value column, const AttentionThread& thread) {
    const ElementwiseProgram& program = block_.program;
    std::vector<std::vector<kernel::Var>> totals;  // by sum and by row of the thread
    for (const int value : values_)
      totals.push_back(zero_vectors(b_, {compute_type(program[value].dtype), own_}, own_));
    b_.for_loop(0, block_.context.dim(program.points(summed_)), 1, [&](Value summed) {
      known_.tile({outer(kept, summed), row, column}, false, thread, [&](auto& points) {
        for (std::size_t s = 0; s < sums_.size(); ++s)
          for (std::size_t r = 0; r < points.size(); ++r) {
            const Value value = b_.broadcast(block_.emitter.emit(values_[s], *points[r]), own_);
            b_.set(totals[s][r], b_.get(totals[s][r]) + value);
          }
      });
    });
    for (int r = 0; r < own_; ++r) {
      const Value here = row + thread.y * own_ + r, first = column + thread.x * own_;
      const AttentionParts& parts = plan_.attention.parts;
      b_.if_(here < block_.row_count, [&] {
        Scope scope(block_.emitter,
                    {{kept_, kept, 1}, {{parts.row_dim}, here, 1}, {{parts.columns_dim}, first, own_}},
                    block_.columns_inside(first));
        for (std::size_t s = 0; s < sums_.size(); ++s) {
          const DType dtype = program[sums_[s].value].dtype;
          const Value total = b_.get(totals[s][r]);
          block_.emitter.store(sums_[s].node, dtype, sums_[s].form, rounded(b_, total, dtype), scope);
        }
      });
    }
  }

  /// Returns the outer index that the other kernels use for these indices.
  Value outer(Value kept, Value summed) {
    const ElementwiseProgram& program = block_.program;
    Linear form{std::vector<Dim>(static_cast<std::size_t>(program.domain.rank()), Dim(0)), 0};
    Dim stride(1);
    const std::vector<int>& dims = plan_.attention.parts.outer;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
      form.coefficients[*d] = stride;
      stride = stride * program.domain[*d].unnamed();
    }
    return LoopIndices(block_.context, program.domain, {{kept_, kept, 1}, {summed_, summed, 1}}).value(form);
  }

  const AttentionPlan& plan_;
  const std::vector<ElementwiseStore>& sums_;
  std::vector<int> values_;
  AttentionBlock block_;
  KnownRows known_;
  kernel::Builder& b_;
  int span_, own_;
  std::vector<int> kept_, summed_;
};

}  // namespace

KernelContext::Built lower_attention_outer_reductions(const AttentionPlan& plan,
                                                      const std::vector<ElementwiseStore>& sums) {
  return OuterReductions(plan, sums).run();
}

}  // namespace lathe::gpu
