#include "passes/cpu/attention/decode/decode_parts.h"

#include <limits>
#include <memory>

#include "passes/cpu/attention/attention_scratch.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {
Value is_lowest(Value most) { return equal(most, -std::numeric_limits<double>::infinity()); }

class Combination {
 public:
  Combination(const CpuContext& lowering, AttentionProgram& attention, const OnlineSoftmax& softmax,
              const DecodeParts& parts, int rows)
      : context_("attention_combine", KernelRole::combine_columns),
        b_(context_.builder),
        lowering_(lowering),
        attention_(attention),
        softmax_(softmax),
        parts_(parts),
        rows_(rows),
        lanes_(program_lanes(attention.program, lowering.vectors())),
        emitter_(context_, attention.program, lowering.buffer_of),
        top_(emitter_, {}) {
    const RegisterTile tile{parts.dtype, lanes_, rows_, 1};
    for (const AttentionParts::OutputProduct& part : attention.parts.outputs)
      outputs_.push_back(std::make_unique<AttentionOutput>(context_, lowering, part, tile, attention.bounds, false));
  }

  KernelContext::Built run() {
    declare();
    emitter_.hoist(top_);
    columns_ = context_.dim(attention_.column_count);
    b_.parallel_for(0, context_.dim(attention_.parts.parallel), 1, [&](Value outer) {
      b_.for_loop(0, rows_, 1, [&](Value row) { combine(outer, row); });
      for (auto& output : outputs_) output->epilogue(outer, b_.index(0), b_.index(rows_), b_.index(0));
    });
    auto built = context_.finish();
    Dim depths(0);
    for (auto& output : outputs_) depths = depths + output->part().depth;
    built.launch.work = Dim(std::int64_t{parts_.count} * rows_) * (depths + Dim(parts_.numbers(softmax_)));
    return built;
  }

 private:
  void declare() {
    std::vector<const ElementwiseProgram*> programs = {&attention_.program};
    for (const auto& output : outputs_) programs.push_back(&output->part().epilogue);
    declare_buffers(context_, programs, lowering_);
    context_.declare(parts_.statistics, parts_.dtype, true, false);
    for (const int sums : parts_.sums) context_.declare(sums, parts_.dtype, true, false);
    AttentionScratch scratch(context_, lowering_,
                             {.compute = parts_.dtype,
                              .lanes = lanes_,
                              .block_rows = rows_,
                              .tile_rows = 1,
                              .columns = Dim(1),
                              .rows = Dim(rows_)});
    for (auto& output : outputs_) {
      totals_.push_back(scratch.sums(output->part()));
      AttentionOutput::Scratch found{.sums = totals_.back()};
      if (output->part().divisor) found.divisors = scratch.divisors(rows_);
      divisors_.push_back(found.divisors);
      output->set_scratch(found);
    }
  }

  Value block(Value outer, Value row, Value part) { return (outer * parts_.count + part) * rows_ + row; }
  Value statistic(Value outer, Value row, Value part, int number) {
    return b_.load(context_.buffer(parts_.statistics), block(outer, row, part) * parts_.numbers(softmax_) + number);
  }

  void combine(Value outer, Value row) {
    const ElementwiseProgram& program = attention_.program;
    Scope scope(emitter_, {{attention_.parts.outer, outer, 1}, {{attention_.parts.row_dim}, row, 1}}, {}, &top_);
    const kernel::Var most = b_.var(b_.constant(parts_.dtype, -std::numeric_limits<double>::infinity()));
    b_.for_loop(0, parts_.count, 1,
                [&](Value part) { b_.set(most, max(statistic(outer, row, part, 0), b_.get(most))); });
    const Value found = b_.get(most), subtracted = subtracted_maximum(b_, found);
    const auto factor = [&](Value part) {
      return b_.apply(ScalarOp::exp, {statistic(outer, row, part, 0) - subtracted});
    };
    // A row of only -inf gives NaN, as exp(a - most) does.
    const Value one = b_.constant(parts_.dtype, 1);
    const Value last = softmax_.zero_masked ? one : b_.select(is_lowest(found) && columns_ > 0, found - found, one);
    scope.bind(softmax_.most, found);
    for (std::size_t s = 0; s < softmax_.sums.size(); ++s) {
      const kernel::Var sum = b_.var(b_.constant(parts_.dtype, 0));
      b_.for_loop(0, parts_.count, 1, [&](Value part) {
        b_.set(sum, b_.get(sum) + statistic(outer, row, part, 1 + static_cast<int>(s)) * factor(part));
      });
      scope.bind(softmax_.sums[s], rounded(b_, b_.get(sum) * last, program[softmax_.sums[s]].dtype));
    }
    for (std::size_t e = 0; e < outputs_.size(); ++e) total(e, outer, row, factor, last);
    for (std::size_t e = 0; e < outputs_.size(); ++e)
      if (divisors_[e]) keep_divisor(*outputs_[e], *divisors_[e], scope, row);
    for (const ElementwiseStore& store : program.stores)
      emitter_.store(store.node, program[store.value].dtype, store.form, emitter_.emit(store.value, scope), scope);
  }

  void total(std::size_t output, Value outer, Value row, const std::function<Value(Value part)>& factor, Value last) {
    const ScratchMatrix& to = totals_[output];
    const kernel::Buffer from = context_.buffer(parts_.sums[output]);
    const Value width = to.stride;
    b_.for_loop(0, width, lanes_, [&](Value d) {
      const kernel::Var sum = b_.var(b_.constant(parts_.dtype, 0, lanes_));
      b_.for_loop(0, parts_.count, 1, [&](Value part) {
        const Value some = b_.load(from, block(outer, row, part) * width + d, lanes_);
        b_.set(sum, b_.get(sum) + some * b_.broadcast(factor(part), lanes_));
      });
      b_.store(to.buffer, row * to.stride + d, b_.get(sum) * b_.broadcast(last, lanes_));
    });
  }

  void keep_divisor(AttentionOutput& output, const ScratchMatrix& divisors, Scope& scope, Value row) {
    const Value divisor = emitter_.emit(*output.part().divisor, scope);
    b_.store(divisors.buffer, row, b_.select(columns_ > 0, divisor, b_.constant(parts_.dtype, 1)));
  }

  KernelContext context_;
  kernel::Builder& b_;
  const CpuContext& lowering_;
  AttentionProgram& attention_;
  const OnlineSoftmax& softmax_;
  const DecodeParts& parts_;
  int rows_, lanes_;
  ElementwiseEmitter emitter_;
  Scope top_;
  std::vector<std::unique_ptr<AttentionOutput>> outputs_;
  std::vector<ScratchMatrix> totals_;
  std::vector<std::optional<ScratchMatrix>> divisors_;
  Value columns_;
};

}  // namespace

Value subtracted_maximum(kernel::Builder& b, Value most) {
  return b.select(is_lowest(most), b.constant(most.type.scalar, 0), most);
}

KernelContext::Built combine_decode_parts(const CpuContext& lowering, AttentionProgram& attention,
                                          const OnlineSoftmax& softmax, const DecodeParts& parts, int rows) {
  return Combination(lowering, attention, softmax, parts, rows).run();
}

}  // namespace lathe::cpu
