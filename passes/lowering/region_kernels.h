#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "passes/lowering/elementwise/point_emitter.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/options.h"

namespace lathe {

/// What the schedules of all regions are given.
struct LoweringContext {
  const ir::Graph& graph;
  const FusionPlan& plan;
  VectorTarget target;
  BufferOf buffer_of;
  /// A fresh temporary of that many elements.
  std::function<int(DType, const Dim& elements, std::string name)> workspace;
  /// The same for each thread, undefined when a task starts.
  std::function<int(DType, const Dim& elements, std::string name)> scratch;
  const TileChoices* tiles = nullptr;  ///< where given, products tell their candidates
  int candidate = 0;                   ///< that a product takes
};

/// Element-wise nodes and reductions over inner dims: one kernel, a loop over rows (or over chunks of the flattened
/// domain), and in it as many loops over the row as its reductions depend on each other. Reductions over the rows are
/// summed up on the way, chunk by chunk; a second kernel adds the chunks. Rows of one large tensor, and rows that are
/// looked up, are asked for ahead.
std::vector<KernelContext::Built> lower_rows(const LoweringContext& context, const Region& region);
/// An element-wise region whose results are where(iota == row, new, state), written over that state: only the row is
/// touched, as in a cache of keys to which a token is added. Nothing for other regions.
std::optional<KernelContext::Built> lower_row_update(const LoweringContext& context, const Region& region);
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
/// How many elements that takes.
Dim scatter_positions_size(const ir::Graph& graph, ir::ValueId scatter);
/// A contraction with its epilogue: kernels that pack operands, then the product.
std::vector<KernelContext::Built> lower_product(const LoweringContext& context, const Region& region);

/// An attention region: strips of rows, each with all its columns in scratch, from the products that make the scores
/// to those that end it. Two kernels where sums over all outer dims are among its members.
std::vector<KernelContext::Built> lower_attention(const LoweringContext& context, const Region& region);

/// Marks the kernels of a product as made by plan number `context.candidate`, and where tiles are chosen tells all
/// plans.
template <class Plan>
void name_candidates(const LoweringContext& context, const std::vector<Plan>& plans,
                     std::vector<KernelContext::Built>& built) {
  for (KernelContext::Built& each : built) each.launch.candidate = context.candidate;
  if (context.tiles)
    for (const Plan& plan : plans) built.back().candidates.push_back(to_string(plan));
}

/// Declares the buffers that programs load from and store to; `extra` are written besides.
void declare_buffers(KernelContext& context, const std::vector<const PointProgram*>& programs,
                     const LoweringContext& lowering);

/// The identity of a reduction in the type it is computed in; infinities become the ends of an integer's range.
kernel::Value reduction_identity(kernel::Builder& b, const PointInstruction& reduce);
/// Whether a tensor is known to be larger than the caches: what is written there is gone from them when it is read.
bool outgrows_caches(const ir::TensorType& type);
/// How many lanes the instructions of a program want: the widest type among them decides.
int program_lanes(const PointProgram& program, const VectorTarget& target);

/// Runs `body(index, lanes, mask)` over [lo, hi) in vectors of `lanes`: unmasked as far as they fit, then once with a
/// mask. `size` is hi - lo where it is known.
void vector_loop(kernel::Builder& b, kernel::Value lo, kernel::Value hi, int lanes,
                 const std::function<void(kernel::Value, kernel::Value)>& body);

}  // namespace lathe
