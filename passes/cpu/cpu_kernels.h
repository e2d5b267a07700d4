#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/region_kernels.h"

/// What a CPU makes of each kind of region.
namespace lathe::cpu {

/// Elements of f32 that a task of element-wise code goes through: as many as L1 holds.
inline std::int64_t task_elements(const CpuInfo& cpu) { return cpu.l1.share() / size_in_bytes(f32); }

/// Element-wise nodes and reductions over inner dims: one kernel, a loop over rows (or over chunks of the flattened
/// domain), and in it as many loops over the row as its reductions depend on each other. Reductions over the rows are
/// summed up on the way, chunk by chunk; a second kernel adds the chunks. Rows of one large tensor, and rows that are
/// looked up, are prefetched.
std::vector<KernelContext::Built> lower_rows(const LoweringContext& context, const Region& region);
/// An element-wise region whose results are where(iota == row, new, state), written over that state: only the row is
/// touched, as in a cache of keys to which a token is added. Nothing for other regions.
std::optional<KernelContext::Built> lower_row_update(const LoweringContext& context, const Region& region);
/// An element-wise region that reads some values transposed, such as y[i, j] = x[j, i]: tiles that are transposed in
/// registers, so that all of a cache line is used while it is in a cache. Nothing for other regions.
std::optional<KernelContext::Built> lower_transposed(const LoweringContext& context, const Region& region);
/// A reduction over outer dims: as in lower_rows where the columns are known and few; else blocks of columns in
/// parallel, each walking down its rows.
std::vector<KernelContext::Built> lower_columns(const LoweringContext& context, const Region& region);
/// scatter_add: first the positions of each row's updates, then rows in parallel, each adding its updates in order,
/// so that the sum is the same on any number of threads; to zeros, or to the operand of a second member that lies
/// where the result goes.
std::vector<KernelContext::Built> lower_scatter(const LoweringContext& context, const Region& region);
/// Writes to the buffer `to` where each row's list of positions starts, at [0, rows], then, from rows + 2 on, the
/// positions (numbers of updates) sorted by row, those of one row in their own order. i64.
KernelContext::Built scatter_positions(const LoweringContext& lowering, ir::ValueId scatter, int to);
/// update_rows: a copy of the old value, unless the result lies in its place, then the rows, those of one task in
/// their order.
std::vector<KernelContext::Built> lower_update_rows(const LoweringContext& context, const Region& region);
/// cumsum: rows, or blocks of columns, in parallel, each summed from one end to the other.
std::vector<KernelContext::Built> lower_scan(const LoweringContext& context, const Region& region);
/// argsort and top_k, a row a task: a merge sort, and a heap of the k best.
std::vector<KernelContext::Built> lower_sort(const LoweringContext& context, const Region& region);
/// grouped_matmul and segment_outer: a product for each segment, of all its rows, whose number is read when it runs.
std::vector<KernelContext::Built> lower_grouped(const LoweringContext& context, const Region& region);
/// One buffer into another, by vectors.
KernelContext::Built lower_copy(const MachineInfo& machine, DType dtype, int from, int to, const Dim& elements);
/// The parts of all processes lie one after the other; each element is folded in the order of their ranks.
KernelContext::Built lower_fold(const MachineInfo& machine, DType dtype, ScalarOp combine, int received, int folded,
                                const Dim& elements, std::int64_t ranks);
/// A contraction with its epilogue: kernels that pack operands, then the product.
std::vector<KernelContext::Built> lower_product(const LoweringContext& context, const Region& region);

/// An attention region: row blocks, each with all its columns in scratch, from the products that make the scores
/// to those that end it. Two kernels where sums over all outer dims are among its members.
std::vector<KernelContext::Built> lower_attention(const LoweringContext& context, const Region& region);

}  // namespace lathe::cpu
