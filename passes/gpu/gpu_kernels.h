#pragma once

#include <functional>
#include <span>
#include <vector>

#include "passes/lowering/region_kernels.h"

namespace lathe::gpu {

/// Element-wise nodes without reductions: a vector a thread, over all points of the domain.
KernelContext::Built lower_points(const LoweringContext& lowering, const Region& region);
/// Reductions over inner dims: some threads a row (by its length), some rows a block; each loop over the row strides
/// by those threads, and a tree in shared memory combines what they reduced. Few and long rows are cut into splits,
/// and each loop over them is a kernel of its own: see rows_plan.h.
std::vector<KernelContext::Built> lower_rows(const LoweringContext& context, const Region& region);
/// A reduction over outer dims: threads side by side along the columns, others down the rows, combined by a tree.
/// Long columns are cut into splits of a number that does not depend on the machine; a second kernel combines them in
/// the same way.
std::vector<KernelContext::Built> lower_columns(const LoweringContext& context, const Region& region);
/// scatter_add: a kernel that clears, one that sorts positions by index in chunks, one that links runs of equal
/// indices from chunk to chunk, and one in which the first run of a row adds the updates of all in order. Of one
/// chunk, known to be the only one, the kernel that sorts links too.
std::vector<KernelContext::Built> lower_scatter(const LoweringContext& context, const Region& region);
/// update_rows: a copy of the old value, unless the result lies in its place, then an element of the rows a thread.
std::vector<KernelContext::Built> lower_update_rows(const LoweringContext& context, const Region& region);
/// cumsum: a column a thread; where nothing stands behind the dim, a row a block, whose threads take an element each
/// of as many as they are and add up in steps, then those of the next ones.
std::vector<KernelContext::Built> lower_scan(const LoweringContext& context, const Region& region);
/// argsort and top_k: an element a thread, which counts those that stand before it. That grows with the square of a
/// row's length, as rows are taken to be short.
std::vector<KernelContext::Built> lower_sort(const LoweringContext& context, const Region& region);
/// grouped_matmul and segment_outer: for each segment, a result a thread.
std::vector<KernelContext::Built> lower_grouped(const LoweringContext& context, const Region& region);
/// A contraction with its epilogue: tiles of 128 x 128 or 64 x 64, 16 deep, through shared memory; 8 x 8 or 4 x 4 of
/// them a thread.
std::vector<KernelContext::Built> lower_product(const LoweringContext& context, const Region& region);
/// The same by tensor cores, for operands of bf16 or f16; long sums of few tiles in splits, which a second kernel
/// adds. Where the GPU has wgmma, it is used where it ends first.
std::vector<KernelContext::Built> lower_tensor_product(const LoweringContext& context, const Region& region);
bool suits_tensor_cores(const LoweringContext& context, const Region& region);
/// The same of as few rows as a token that is decoded has: threads that read the right operand as it lies in memory
/// share each sum, and no tile is filled: few_rows_product.h.
std::vector<KernelContext::Built> lower_few_rows_product(const LoweringContext& context, const Region& region);
bool has_few_rows(const LoweringContext& context, const Region& region);
/// An attention region: blocks of rows, and where products sum over rows, then blocks of columns: attention.h. Where
/// the GPU has wgmma and a launch does not use it, it says why.
std::vector<KernelContext::Built> lower_attention(const LoweringContext& context, const Region& region);
/// Copies one buffer to another.
KernelContext::Built lower_copy(const MachineInfo& machine, DType dtype, int from, int to, const Dim& elements);
/// Folds what came from so many processes, whose pieces lie one after the other, in their order: an element a thread.
KernelContext::Built lower_fold(const MachineInfo& machine, DType dtype, ScalarOp combine, int received, int folded,
                                const Dim& elements, std::int64_t ranks);

// What the schedules are built of.

/// for i in 0..n step s @block.x { for t in 0..threads @thread.x { body(i + t * width) } }, s = threads * width, with
/// the GPU's block_threads: every thread gets the first of `width` indices; those at and beyond n get none.
void for_threads(kernel::Builder& b, const GpuInfo& gpu, kernel::Value n, int width,
                 const std::function<void(kernel::Value)>& body);

/// body({}) where all of [at, at + lanes) lies below `end`, else body(mask of those that do). Where `size` (end is a
/// multiple of it or it itself) is known to be a multiple of the lanes, only the first is written.
void unmasked_or_masked(kernel::Builder& b, kernel::Value at, kernel::Value end, int lanes, const Dim& size,
                        const std::function<void(kernel::Value)>& body);

/// Sets `into` to load(mask or {}) of its lanes from `at` on, converted, with zeros in lanes at and beyond `end`;
/// `size` as above.
void set_inside(kernel::Builder& b, kernel::Var into, kernel::Value at, kernel::Value end, const Dim& size,
                const std::function<kernel::Value(kernel::Value)>& load);

/// `count` vectors of zeros in registers.
std::vector<kernel::Var> zero_vectors(kernel::Builder& b, kernel::Type type, int count);
void clear(kernel::Builder& b, std::span<const kernel::Var> registers);

/// sums[r * columns + c] += lane r of `rows` * columns[c]; floats are rounded once.
void multiply_add(kernel::Builder& b, std::span<const kernel::Var> sums, kernel::Value rows,
                  const std::vector<kernel::Value>& columns);

/// Combines one value a thread over each `width` neighbouring threads of a warp (a power of two), `lane` being the
/// thread's number in the warp (of whole warps: or in the block). Values are combined pairwise, the upper half with
/// the lower half; all threads of the warp call it, and all of a group get the same.
kernel::Value reduce_in_warp(kernel::Builder& b, ScalarOp op, kernel::Value value, kernel::Value lane, int width);

/// Combines one value a thread over the `width` threads of a group (a power of two): `slot` is the thread's index in
/// shared memory, groups lying one behind the other, `index` its number in the group (i64); a group of 32 or more
/// consists of warps. All threads of the block call it; all get their group's results. Values are combined pairwise,
/// the upper half with the lower half, by the ops of the same position: through shared memory with barriers, inside a
/// warp by from_lane without.
class SharedTree {
 public:
  /// Allocates the memory: in a block loop, outside the thread loops. Groups of one thread or one warp need none.
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
