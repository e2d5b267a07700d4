#include "passes/gpu/attention/attention_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "passes/gpu/attention/row_reciprocals.h"
#include "passes/gpu/attention/wgmma/wgmma_outputs.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/attention/tile_skip_check.h"

namespace lathe::gpu {

using Kind = ElementwiseInstruction::Kind;

namespace {

std::vector<int> summed_over_columns(const AttentionProgram& attention) {
  std::vector<int> found;
  for (const AttentionParts::OutputProduct& output : attention.parts.outputs)
    if (!output.over_rows) found.push_back(output.value);
  return found;
}

/// Removes the sums over outer dims from the stores and returns them, because the kernel of the rows does not compute
/// them. Columns can then be skipped only where the values that these sums read are zero too.
std::vector<ElementwiseStore> take_outer_reductions(AttentionProgram& attention) {
  ElementwiseProgram& program = attention.program;
  AttentionParts& parts = attention.parts;
  parts.parallel = parts.parallel * std::exchange(parts.accumulated, Dim(1));
  const auto is_sum = [&](const ElementwiseStore& store) { return program[store.value].kind == Kind::column; };
  std::vector<ElementwiseStore> sums;
  std::copy_if(program.stores.begin(), program.stores.end(), std::back_inserter(sums), is_sum);
  if (sums.empty()) return sums;
  std::erase_if(program.stores, is_sum);
  std::vector<int> read = attention.results();
  for (const ElementwiseStore& sum : sums) read.push_back(program[sum.value].args[0]);
  attention.bounds = find_column_bounds(program, parts.row_dim, parts.columns_dim, read);
  return sums;
}

/// Returns the values of each row that the matmuls over rows (or columns) and sums over outer dims need: reductions,
/// and quotients such as the reciprocal of a sum.
std::vector<int> needed_of_each_row(const AttentionProgram& attention, OutputProducts wanted,
                                    const std::vector<ElementwiseStore>& outer_reductions) {
  std::vector<int> found;
  std::vector<bool> seen(attention.program.code.size(), false);
  const std::function<void(int)> look = [&](int i) {
    if (seen[i]) return;
    seen[i] = true;
    const ElementwiseInstruction& instruction = attention.program[i];
    const bool divides = instruction.kind == Kind::scalar && instruction.op == ScalarOp::div;
    const std::uint64_t depends = attention.program.depends[i];
    const bool of_row = (depends & attention.columns()) == 0 && (depends >> attention.parts.row_dim & 1) != 0;
    if (instruction.kind == Kind::reduce || (divides && of_row)) return found.push_back(i);
    for (const int arg : attention.program[i].args) look(arg);
  };
  for (const AttentionParts::OutputProduct& output : attention.parts.outputs)
    if (output.over_rows == (wanted == OutputProducts::over_rows)) look(output.value);
  for (const ElementwiseStore& sum : outer_reductions) look(sum.value);
  return found;
}

/// Returns bf16 or f16 if every factor of every matmul has that dtype, so that tensor cores multiply exactly the
/// values of the graph. Otherwise returns the dtype of the sums.
DType held_dtype(const AttentionProgram& attention) {
  const AttentionParts& parts = attention.parts;
  std::vector<DType> factors;
  const auto add = [&](const AttentionOperand& o) { factors.push_back(o.code.program[o.code.result].dtype); };
  for (const AttentionParts::Score& score : parts.scores) add(score.rows), add(score.columns);
  for (const AttentionParts::OutputProduct& output : parts.outputs) {
    add(output.other);
    factors.push_back(attention.program[output.value].dtype);
  }
  const DType first = factors.front();
  const bool one = std::all_of(factors.begin(), factors.end(), [&](DType d) { return d == first; });
  return one && (first == bf16 || first == f16) ? first : parts.compute;
}

}  // namespace

AttentionPlan::AttentionPlan(const GpuContext& context, const Region& region)
    : lowering(context),
      attention(attention_program(
          context, region, with_row_reciprocals(context.graph, region_program(context.graph, context.plan, region)))),
      outer_reductions(take_outer_reductions(attention)),
      online(outer_reductions.empty() ? find_online_softmax(attention) : std::nullopt),
      row_blocks(context.graph, attention.program, attention.columns(), summed_over_columns(attention),
                 RowBlockPlan::Memory::none),
      tile{attention.parts.compute, held_dtype(attention)} {
  const AttentionParts& parts = attention.parts;
  keep(needed_of_each_row(attention, OutputProducts::over_rows, outer_reductions));
  if (!attention.bounds.any()) return;
  if (parts.sums_over_rows() || !outer_reductions.empty())
    skips = context.workspace(boolean, outer() * blocks_of(attention.rows), "rows that leave out columns");
  const auto add = [&](const AttentionOperand& operand) {
    const auto same = [&](const OperandMaximum& m) { return same_elements(*m.operand, operand); };
    if (std::any_of(maxima.begin(), maxima.end(), same)) return;
    const Dim splits = blocks_of(operand.by_column ? attention.column_count : attention.rows);
    maxima.push_back({&operand, context.workspace(parts.compute, outer() * splits, "maxima")});
  };
  for (const AttentionOperand* operand : bounded_operands(parts, attention.bounds)) add(*operand);
}

void AttentionPlan::keep(const std::vector<int>& values) {
  for (const int i : values)
    if (!row_values.contains(i))
      row_values[i] =
          lowering.workspace(compute_type(attention.program[i].dtype), outer() * attention.rows, "values of rows");
}

void AttentionPlan::take_outputs_over_columns() {
  outputs_over_columns_taken = true;
  if (attention.bounds.any() && skips < 0)
    skips = lowering.workspace(boolean, outer() * blocks_of(attention.rows), "rows that leave out columns");
  keep(needed_of_each_row(attention, OutputProducts::over_columns, {}));
}

Dim AttentionPlan::blocks_of(const Dim& positions) const {
  const auto known = positions.value();
  return known ? Dim((*known + tile.span() - 1) / tile.span()) : positions;
}

const AttentionPlan::OperandMaximum& AttentionPlan::maximum(const AttentionOperand& operand) const {
  const auto same = [&](const OperandMaximum& m) { return same_elements(*m.operand, operand); };
  const auto found = std::find_if(maxima.begin(), maxima.end(), same);
  LATHE_ASSERT(found != maxima.end());
  return *found;
}

std::vector<KernelContext::Built> lower_attention(const GpuContext& context, const Region& region) {
  const bool warpgroups = context.gpu.wgmma;
  AttentionPlan plan(context, region);
  std::vector<KernelContext::Built> built;
  if (!plan.maxima.empty()) built.push_back(lower_operand_maxima(plan));
  const auto note = [&](const std::string& why_not) {
    if (!why_not.empty()) built.back().launch.info.missed.push_back({Multiplier::wgmma, why_not});
  };
  const auto rows = warpgroups ? plan_wgmma_attention(plan) : WgmmaPlan<WgmmaAttentionTile>{};
  const auto wanted = [&](bool over_rows) {
    return warpgroups ? plan_wgmma_outputs(plan, over_rows) : WgmmaPlan<WgmmaOutputTile>{};
  };
  const bool is_forward = rows.tile || plan.online;
  const auto in_one = !warpgroups || is_forward ? WgmmaPlan<WgmmaOutputTile>{}
                      : context.tuned.attention.one_gradient_kernel
                          ? plan_wgmma_gradients(plan)
                          : WgmmaPlan<WgmmaOutputTile>{std::nullopt, "two kernels are selected"};
  const auto of_columns = in_one.tile || is_forward ? WgmmaPlan<WgmmaOutputTile>{} : wanted(false);
  if (in_one.tile || of_columns.tile) plan.take_outputs_over_columns();
  built.push_back(rows.tile ? lower_wgmma_attention(plan, *rows.tile) : lower_attention_rows(plan));
  note(rows.why_not);
  note(of_columns.why_not);
  if (of_columns.tile) built.push_back(lower_wgmma_outputs(plan, false, *of_columns.tile));
  if (in_one.tile)
    for (auto& one : lower_wgmma_gradients(plan, *in_one.tile)) built.push_back(std::move(one));
  if (plan.attention.parts.sums_over_rows() && !in_one.tile) {
    const auto of_rows = wanted(true);
    built.push_back(of_rows.tile ? lower_wgmma_outputs(plan, true, *of_rows.tile) : lower_attention_columns(plan));
    note(of_rows.why_not);
    if (of_columns.tile && of_rows.tile)
      built.back().launch.info.missed.push_back({Multiplier::none, in_one.why_not});
  }
  std::map<std::uint64_t, std::vector<ElementwiseStore>> sums;  // by kept dims
  for (const ElementwiseStore& sum : plan.outer_reductions)
    sums[plan.attention.program.depends[sum.value]].push_back(sum);
  for (const auto& [kept, of_one_kind] : sums) {
    built.push_back(lower_attention_outer_reductions(plan, of_one_kind));
    if (warpgroups) note("it sums over outer dims, tile by tile");
  }
  return built;
}

}  // namespace lathe::gpu
