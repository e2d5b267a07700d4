#pragma once

#include <functional>
#include <span>
#include <vector>

#include "passes/gpu/gpu_context.h"

namespace lathe::gpu {

/// Lowers elementwise nodes without reductions: one vector per thread, over all points of the domain.
KernelContext::Built lower_points(const GpuContext& lowering, const Region& region);
/// Lowers reductions over inner dims: several threads per row, depending on its length, and several rows per block.
/// Each loop over the row strides by these threads, and a tree in shared memory combines their results. If rows are
/// few and long, they are split, and each loop over them is a separate kernel: see rows_plan.h.
std::vector<KernelContext::Built> lower_rows(const GpuContext& context, const Region& region);
/// Lowers a reduction over outer dims: some threads go along the columns, others down the rows, combined by a tree.
/// Long columns are split, depending on the sizes and not on measurements; a second kernel combines the splits in the
/// same way.
std::vector<KernelContext::Built> lower_columns(const GpuContext& context, const Region& region);
/// Lowers scatter_add: one kernel clears the result, one sorts positions by index in chunks, one links runs of equal
/// indices from chunk to chunk. In the last one, the first run of a row adds the updates of all its runs in order. If
/// there is known to be only one chunk, the kernel that sorts also links.
std::vector<KernelContext::Built> lower_scatter(const GpuContext& context, const Region& region);
/// Lowers update_rows: copies the old value unless the result is in place, then writes one element of the rows per
/// thread.
std::vector<KernelContext::Built> lower_update_rows(const GpuContext& context, const Region& region);
/// Lowers cumsum and linear_recurrence: one column per thread. If no dims follow, one row per block: its threads take
/// one element each, add them up in steps, and continue with the next elements.
std::vector<KernelContext::Built> lower_scan(const GpuContext& context, const Region& region);
/// Lowers argsort and top_k: one element per thread, which counts the elements before it in the order. The cost is
/// quadratic in the length of a row; rows are assumed to be short.
std::vector<KernelContext::Built> lower_sort(const GpuContext& context, const Region& region);
/// Lowers grouped_matmul and segment_outer: for each segment, one result per thread.
std::vector<KernelContext::Built> lower_grouped(const GpuContext& context, const Region& region);
/// Lowers cholesky, one matrix per block, column by column; and solve_triangular, one column of results per thread.
/// Bases (passes/lowering/operands/bases.h) have one matrix per block.
std::vector<KernelContext::Built> lower_triangular(const GpuContext& context, const Region& region);
/// Lowers a contraction with its epilogue: tiles of 128 x 128 or 64 x 64, 16 deep, in shared memory; 8 x 8 or 4 x 4
/// results per thread.
std::vector<KernelContext::Built> lower_product(const GpuContext& context, const Region& region);
/// Lowers a contraction of bf16 or f16 by tensor cores. Long sums of few tiles are split, and a second kernel adds
/// the splits. If the GPU has wgmma, it is used where its estimated time is shorter.
std::vector<KernelContext::Built> lower_tensor_product(const GpuContext& context, const Region& region);
bool suits_tensor_cores(const GpuContext& context, const Region& region);
/// Lowers a contraction with as few rows as a decode step has. Threads that read the right operand in memory order
/// share each sum, without tiles: gemv.h.
std::vector<KernelContext::Built> lower_gemv(const GpuContext& context, const Region& region);
bool is_gemv(const GpuContext& context, const Region& region);
/// Lowers an attention region: blocks of rows and, if matmuls sum over rows, blocks of columns: attention_plan.h. If
/// the GPU has wgmma and a launch does not use it, the launch gives the reason.
std::vector<KernelContext::Built> lower_attention(const GpuContext& context, const Region& region);
/// Copies one buffer to another.
KernelContext::Built lower_copy(const HardwareInfo& machine, DType dtype, int from, int to, const Dim& elements);
/// Reduces the pieces of all processes, which are stored one after the other, in rank order: one element per thread.
KernelContext::Built lower_fold(const HardwareInfo& machine, DType dtype, ScalarOp combine, int received, int folded,
                                const Dim& elements, std::int64_t ranks);

// Building blocks of the schedules.

/// for i in 0..n step s @block.x { for t in 0..threads @thread.x { body(i + t * width) } }, s = threads * width, with
/// block_threads. Every thread gets the first of `width` indices; indices from n on are skipped.
void for_threads(kernel::Builder& b, kernel::Value n, int width, const std::function<void(kernel::Value)>& body);

/// Emits body({}) if all of [at, at + lanes) is below `end`, otherwise body(mask of the lanes that are). Emits only
/// the first version if `size` is known to be a multiple of the lanes (`end` is `size` or a multiple of it).
void unmasked_or_masked(kernel::Builder& b, kernel::Value at, kernel::Value end, int lanes, const Dim& size,
                        const std::function<void(kernel::Value)>& body);

/// Sets `into` to load(mask or {}) of its lanes from `at` on, converted; lanes from `end` on are zero. `size` as
/// above.
void set_inside(kernel::Builder& b, kernel::Var into, kernel::Value at, kernel::Value end, const Dim& size,
                const std::function<kernel::Value(kernel::Value)>& load);

/// Returns `count` vectors of zeros in registers.
std::vector<kernel::Var> zero_vectors(kernel::Builder& b, kernel::Type type, int count);
void clear(kernel::Builder& b, std::span<const kernel::Var> registers);

/// sums[r * columns + c] += lane r of `rows` * columns[c]; floats are rounded once.
void multiply_add(kernel::Builder& b, std::span<const kernel::Var> sums, kernel::Value rows,
                  const std::vector<kernel::Value>& columns);

/// Combines one value per thread over each `width` adjacent threads of a warp (a power of two). `lane` is the
/// thread's number in the warp, or in the block for whole warps. Values are combined pairwise, the upper half with
/// the lower half. All threads of the warp call it, and all threads of a group get the same result.
kernel::Value reduce_in_warp(kernel::Builder& b, ScalarOp op, kernel::Value value, kernel::Value lane, int width);
/// Same for an op that commutes, with fewer exchanges and no registers for lanes: threads whose numbers differ in one
/// bit exchange their values, so they compute the same results. `thread` is the index of the thread.x loop. Combines
/// only threads whose numbers differ by multiples of `apart`, a power of two.
kernel::Value reduce_with_partners(kernel::Builder& b, ScalarOp op, kernel::Value value, kernel::Value thread,
                                   int width, int apart = 1);

/// Combines one value per thread over the `width` threads of a group (a power of two). `slot` is the thread's index
/// in shared memory, where the groups follow each other; `index` is its number in the group (i64). A group of 32 or
/// more consists of whole warps. All threads of the block call it, and all get their group's results. Values are
/// combined pairwise, the upper half with the lower half, by the op of the same position: through shared memory with
/// barriers, inside a warp by from_lane without barriers.
class SharedTree {
 public:
  /// Allocates the memory; call it in a block loop, outside the thread loops. Groups of one thread or one warp need
  /// none.
  SharedTree(kernel::Builder& b, const std::vector<DType>& dtypes, int threads);
  std::vector<kernel::Value> reduce(const std::vector<std::size_t>& which, const std::vector<ScalarOp>& ops,
                                    std::vector<kernel::Value> values, kernel::Value slot, kernel::Value index,
                                    int width);

 private:
  void reduce_halves(const std::vector<std::size_t>& which, const std::vector<ScalarOp>& ops, kernel::Value slot,
                     kernel::Value index, int width, int least);

  kernel::Builder& b_;
  std::vector<kernel::Buffer> memory_;
};

}  // namespace lathe::gpu
