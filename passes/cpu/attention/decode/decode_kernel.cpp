#include "passes/cpu/attention/decode/decode_kernel.h"

#include <algorithm>
#include <memory>

#include "passes/cpu/attention/attention_scratch.h"
#include "passes/cpu/attention/decode/decode_parts.h"
#include "passes/cpu/attention/decode/decode_products.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;
using Columns = DecodeLoops::Columns;

namespace {

class DecodeKernel {
 public:
  DecodeKernel(const CpuContext& lowering, AttentionProgram attention, std::optional<OnlineSoftmax> softmax,
               int parts)
      : lowering_(lowering),
        context_("decode_attention", KernelRole::attention),
        b_(context_.builder),
        attention_(std::move(attention)),
        softmax_(std::move(softmax)),
        emitter_(context_, program_, lowering.buffer_of),
        top_(emitter_, {}),
        shape_{.compute = parts_.compute,
               .lanes = program_lanes(program_, lowering.vectors()),
               .rows = static_cast<int>(*attention_.rows.value()),
               .accumulators = accumulators(lowering.vectors()),
               .held = lowering.vectors().count / 4,
               .block_columns = lowering.tuned.attention.decode_columns},
        plan_(lowering.graph, program_, attention_.columns(), attention_.results()) {
    left_.count = parts;
    left_.dtype = parts_.compute;
    for (const AttentionParts::Score& part : parts_.scores)
      scores_.push_back(std::make_unique<DecodeScore>(context_, lowering, part, shape_));
    const RegisterTile tile{parts_.compute, shape_.lanes, shape_.rows, 1};
    for (const AttentionParts::OutputProduct& part : parts_.outputs)
      outputs_.push_back(std::make_unique<AttentionOutput>(context_, lowering, part, tile, attention_.bounds, false));
    for (auto& output : outputs_) sums_.emplace_back(context_, *output, shape_);
  }

  std::vector<KernelContext::Built> run() {
    declare();
    hoist();
    columns_ = context_.dim(attention_.column_count);
    const Value outer_count = context_.dim(parts_.parallel);
    b_.parallel_for(0, outer_count * left_.count, 1,
                    [&](Value task) { in_parts() ? one_part(task) : all_columns(task); });
    std::vector<KernelContext::Built> built;
    built.push_back(finish());
    if (in_parts()) built.push_back(combine_decode_parts(lowering_, attention_, *softmax_, left_, shape_.rows));
    return built;
  }

 private:
  bool in_parts() const { return left_.count > 1; }
  int part_columns() const { return lowering_.tuned.attention.part_columns; }

  void declare() {
    std::vector<const ElementwiseProgram*> programs = {&program_};
    for (const AttentionParts::Score& score : parts_.scores)
      programs.insert(programs.end(), {&score.rows.code.program, &score.columns.code.program});
    for (const AttentionParts::OutputProduct& output : parts_.outputs) {
      programs.push_back(&output.other.code.program);
      if (!in_parts()) programs.push_back(&output.epilogue);
    }
    declare_buffers(context_, programs, lowering_);
    AttentionScratch scratch(context_, lowering_,
                             {.compute = parts_.compute,
                              .lanes = shape_.lanes,
                              .block_rows = shape_.rows,
                              .tile_rows = 1,
                              .columns = attention_.column_count + Dim(part_columns() + shape_.lanes),
                              .rows = Dim(shape_.rows)});
    std::vector<ScratchMatrix> slots;
    for (int s = 0; s < plan_.slots(); ++s) slots.push_back(scratch.row_slot(plan_.slot_dtype(s), shape_.rows));
    for (auto& score : scores_) score->set_scratch(scratch.decode_rows(score->part(), shape_.rows));
    for (std::size_t e = 0; e < outputs_.size(); ++e)
      in_parts() ? give_workspace(scratch, e) : give_scratch(scratch, e);
    if (in_parts()) {
      const Dim numbers(std::int64_t{left_.count} * shape_.rows * left_.numbers(*softmax_));
      left_.statistics = lowering_.workspace(left_.dtype, parts_.parallel * numbers, "maxima and sums of parts");
      context_.declare(left_.statistics, left_.dtype, false, true);
    }
    loops_.emplace(emitter_, plan_,
                   DecodeLoops::Shape{parts_.outer, parts_.row_dim, parts_.columns_dim, shape_.lanes},
                   std::move(slots));
  }

  void give_scratch(AttentionScratch& scratch, std::size_t e) {
    AttentionOutput::Scratch found{.sums = scratch.sums(outputs_[e]->part())};
    if (outputs_[e]->part().divisor) found.divisors = scratch.divisors(shape_.rows);
    outputs_[e]->set_scratch(found);
    divisors_.push_back(found.divisors);
    sums_[e].set_sums(found.sums);
  }

  void give_workspace(AttentionScratch& scratch, std::size_t e) {
    const Dim width = scratch.width_of(outputs_[e]->part().depth);
    const int id = lowering_.workspace(
        left_.dtype, parts_.parallel * Dim(std::int64_t{left_.count} * shape_.rows) * width, "sums of parts");
    context_.declare(id, left_.dtype, true, true);
    left_.sums.push_back(id);
    sums_[e].set_sums(scratch.matrix_in(context_.buffer(id), outputs_[e]->part().depth));
  }

  /// Emits everything that depends on no index before the parallel loop.
  void hoist() {
    emitter_.hoist(top_);
    for (auto& score : scores_) score->hoist();
    for (auto& output : outputs_) output->other().hoist();
  }

  void scores(Value outer, const Columns& columns) {
    for (auto& score : scores_) {
      score->pack_rows(outer);
      score->multiply(loops_->slot(score->part().value), outer, columns);
    }
  }

  void each_row(Value outer, const std::function<void(Value row, Scope& scope)>& body) {
    b_.for_loop(0, shape_.rows, 1, [&](Value row) {
      Scope scope(emitter_, {{parts_.outer, outer, 1}, {{parts_.row_dim}, row, 1}}, {}, &top_);
      body(row, scope);
    });
  }

  void all_columns(Value outer) {
    const Columns columns{b_.index(0), columns_};
    scores(outer, columns);
    each_row(outer, [&](Value row, Scope& scope) {
      loops_->run(outer, row, columns, scope,
                  [&](int reduction, Value found) { return rounded(b_, found, program_[reduction].dtype); });
      loops_->store_row(scope);
      for (std::size_t e = 0; e < outputs_.size(); ++e) {
        if (!divisors_[e]) continue;
        // Without columns there are no weights to divide.
        const Value divisor = emitter_.emit(*outputs_[e]->part().divisor, scope);
        b_.store(divisors_[e]->buffer, row, b_.select(columns_ > 0, divisor, b_.constant(parts_.compute, 1)));
      }
    });
    add_up(outer, columns, b_.index(0));
    for (auto& output : outputs_) output->epilogue(outer, b_.index(0), b_.index(shape_.rows), b_.index(0));
  }

  void add_up(Value outer, const Columns& columns, Value at) {
    for (DecodeSum& sum : sums_) sum.add_up(loops_->slot(sum.output().part().value), outer, columns, at);
  }

  void one_part(Value task) {
    const Value outer = task / left_.count, width = b_.round_up(b_.ceil_div(columns_, left_.count), part_columns());
    const Value lo = min(task % left_.count * width, columns_);
    const Columns columns{lo, min(lo + width, columns_)};
    scores(outer, columns);
    const kernel::Buffer statistics = context_.buffer(left_.statistics);
    each_row(outer, [&](Value row, Scope& scope) {
      const Value at = (task * shape_.rows + row) * left_.numbers(*softmax_);
      loops_->run(outer, row, columns, scope, [&](int reduction, Value found) {
        const auto sum = std::find(softmax_->sums.begin(), softmax_->sums.end(), reduction);
        b_.store(statistics, at + (reduction == softmax_->most ? 0 : 1 + (sum - softmax_->sums.begin())), found);
        return reduction == softmax_->most ? subtracted_maximum(b_, found) : found;
      });
    });
    add_up(outer, columns, task * shape_.rows);
  }

  KernelContext::Built finish() {
    Dim depths(0);
    for (const AttentionParts::Score& score : parts_.scores) depths = depths + score.depth;
    for (const AttentionParts::OutputProduct& output : parts_.outputs) depths = depths + output.depth;
    context_.multiplies_by(Multiplier::fma, missed_tiles(attention_));
    auto built = context_.finish();
    built.launch.flops = attention_.flops(depths);
    built.launch.work = Dim(shape_.rows) * attention_.column_count * (depths + Dim(score_work));
    return built;
  }

  const CpuContext& lowering_;
  KernelContext context_;
  kernel::Builder& b_;
  AttentionProgram attention_;
  std::optional<OnlineSoftmax> softmax_;
  const ElementwiseProgram& program_ = attention_.program;
  const AttentionParts& parts_ = attention_.parts;
  ElementwiseEmitter emitter_;
  Scope top_;
  DecodeShape shape_;
  RowBlockPlan plan_;
  DecodeParts left_;
  std::optional<DecodeLoops> loops_;
  std::vector<std::unique_ptr<DecodeScore>> scores_;
  std::vector<std::unique_ptr<AttentionOutput>> outputs_;
  std::vector<DecodeSum> sums_;
  std::vector<std::optional<ScratchMatrix>> divisors_;
  Value columns_;
};

/// Returns the number of parts that the columns are split into, so that every core has a task.
int parts_of(const AttentionProgram& attention, const CpuInfo& cpu) {
  const auto tasks = attention.parts.parallel.value();
  return tasks && *tasks > 0 ? std::max(1, cpu.cores / static_cast<int>(std::min<std::int64_t>(*tasks, cpu.cores)))
                             : 1;
}

}  // namespace

std::optional<std::vector<KernelContext::Built>> lower_decode(const CpuContext& context, const Region& region) {
  const auto rows = region.domain[region.attention().row].value();
  if (!rows || *rows < 1 || *rows > context.tuned.attention.decode_rows) return std::nullopt;
  AttentionProgram attention = attention_program(context, region);
  const AttentionParts& parts = attention.parts;
  const auto adds_up = [](const ElementwiseInstruction& i) { return i.kind == ElementwiseInstruction::Kind::column; };
  const std::vector<ElementwiseInstruction>& code = attention.program.code;
  if (parts.sums_over_rows() || !parts.sequential.is(1) || std::any_of(code.begin(), code.end(), adds_up))
    return std::nullopt;
  int count = parts_of(attention, context.cpu);
  std::optional<OnlineSoftmax> softmax;
  if (count > 1) {
    AttentionProgram online = attention;
    softmax = find_online_softmax(online);
    const auto computed = [&](int i) { return compute_type(online.program[i].dtype) == parts.compute; };
    if (softmax && computed(softmax->most) && std::all_of(softmax->sums.begin(), softmax->sums.end(), computed))
      attention = std::move(online);
    else
      count = 1;
  }
  return DecodeKernel(context, std::move(attention), std::move(softmax), count).run();
}

}  // namespace lathe::cpu
