#pragma once

#include <optional>
#include <vector>

#include "passes/cpu/cpu_context.h"

/// Lowers each kind of region to CPU kernels.
namespace lathe::cpu {

/// Returns the number of f32 elements that a task of elementwise code processes: as many as fit into L1.
inline std::int64_t task_elements(const CpuInfo& cpu) { return cpu.l1.share() / size_in_bytes(f32); }

/// Lowers elementwise nodes and reductions over inner dims to one kernel. It loops over rows, or over chunks of the
/// flattened domain; inside, there is one loop over the row per level of dependent reductions. Reductions over the
/// rows are accumulated per chunk, and a second kernel adds the chunks. Rows of a large tensor and gathered rows are
/// prefetched.
std::vector<KernelContext::Built> lower_rows(const CpuContext& context, const Region& region);
/// Lowers an elementwise region whose results are where(iota == row, new, state), written in place over that state.
/// Only the row is touched, as in a KV-cache append. Returns nothing for other regions.
std::optional<KernelContext::Built> lower_cache_append(const CpuContext& context, const Region& region);
/// Lowers an elementwise region that reads some values transposed, such as y[i, j] = x[j, i]. Tiles are transposed in
/// registers, so that a whole cache line is used while it is in a cache. Returns nothing for other regions.
std::optional<KernelContext::Built> lower_transposed(const CpuContext& context, const Region& region);
/// Lowers a reduction over outer dims: as in lower_rows if the columns are known and few. Otherwise blocks of columns
/// run in parallel, each over all rows.
std::vector<KernelContext::Built> lower_columns(const CpuContext& context, const Region& region);
/// Lowers scatter_add. The first kernel sorts the positions of the updates by row. Rows then run in parallel and add
/// their updates in order, so that the sum does not depend on the number of threads. Sums start at zero, or at the
/// operand of a second member that shares the result's memory.
std::vector<KernelContext::Built> lower_scatter(const CpuContext& context, const Region& region);
/// Writes to the buffer `to` of i64. At [0, rows]: where each row's list of positions starts. From rows + 2 on: the
/// positions (numbers of updates), sorted by row and ascending within a row.
KernelContext::Built scatter_positions(const CpuContext& lowering, ir::ValueId scatter, int to);
/// Lowers update_rows: copies the old value unless the result is in place, then writes the rows, those of one task in
/// order.
std::vector<KernelContext::Built> lower_update_rows(const CpuContext& context, const Region& region);
/// Lowers cumsum and linear_recurrence: rows, or blocks of columns, run in parallel, each from step to step.
std::vector<KernelContext::Built> lower_scan(const CpuContext& context, const Region& region);
/// Lowers argsort and top_k, one row per task: a merge sort, and a heap of the k best.
std::vector<KernelContext::Built> lower_sort(const CpuContext& context, const Region& region);
/// Lowers grouped_matmul and segment_outer: one matmul per segment, over all its rows, whose number is read at run
/// time.
std::vector<KernelContext::Built> lower_grouped(const CpuContext& context, const Region& region);
/// Lowers cholesky, one matrix per task, row by row by dot products of finished rows; and solve_triangular, one block
/// of columns per task, a column per lane. Bases (passes/lowering/operands/bases.h) have one matrix per task.
std::vector<KernelContext::Built> lower_triangular(const CpuContext& context, const Region& region);
/// Copies one buffer to another in vectors.
KernelContext::Built lower_copy(const HardwareInfo& machine, DType dtype, int from, int to, const Dim& elements);
/// Reduces the parts of all processes, which are stored one after the other; each element is combined in rank order.
KernelContext::Built lower_fold(const HardwareInfo& machine, DType dtype, ScalarOp combine, int received, int folded,
                                const Dim& elements, std::int64_t ranks);
/// Lowers a contraction with its epilogue: kernels that pack operands, then the matmul.
std::vector<KernelContext::Built> lower_product(const CpuContext& context, const Region& region);

/// Lowers an attention region. Row blocks keep all their columns in scratch, from the score matmuls to the output
/// matmuls. Emits two kernels if sums over all outer dims are among the members.
std::vector<KernelContext::Built> lower_attention(const CpuContext& context, const Region& region);

}  // namespace lathe::cpu
