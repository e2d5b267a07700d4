#include <algorithm>

#include "passes/cpu/cpu_kernels.h"
#include "passes/fusion/join_columns.h"
#include "passes/lowering/block_sums.h"
#include "passes/lowering/elementwise/column_space.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Emits a reduction over outer dims. The kept dims after the last reduced one are the columns; the others are outer.
class ColumnKernel {
 public:
  ColumnKernel(const CpuContext& lowering, const Region& region)
      : context_("columns", KernelRole::column_reduction),
        program_(region_program(lowering.graph, lowering.plan, region)),
        dims_(lowering, region, program_),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder) {
    declare_buffers(context_, {&program_}, lowering);
    lanes_ = program_lanes(program_, lowering.vectors());
    vectors_ = lowering.tuned.loops.column_vectors;
    reduce_ = program_.size() - 1;
    LATHE_ASSERT(program_[reduce_].kind == ElementwiseInstruction::Kind::reduce && program_.stores.size() == 1);
  }

  KernelContext::Built run() {
    Scope top(emitter_, {});
    emitter_.hoist(top);
    const Value columns = context_.dim(program_.points(dims_.columns)),
                outer = context_.dim(program_.points(dims_.outer));
    const Value blocks = b_.ceil_div(columns, vectors_ * lanes_);
    b_.parallel_for(0, outer * blocks, 1, [&](Value i) {
      const Value first = i % blocks * (vectors_ * lanes_);
      block(i / blocks, first, columns, top);
    });
    auto built = context_.finish();
    built.launch.work = program_.points(dims_.reduced) * Dim(vectors_ * lanes_ * program_.work());
    built.launch.flops =
        program_.points(dims_.reduced) * program_.points(dims_.columns) * program_.points(dims_.outer);
    return built;
  }

 private:
  void block(Value outer, Value first, Value columns, Scope& top) {
    const ElementwiseInstruction& reduce = program_[reduce_];
    const kernel::Type type{compute_type(reduce.dtype), lanes_};
    const Value identity = b_.broadcast(reduction_identity(b_, reduce), lanes_);
    std::vector<BlockTotal> totals;
    std::vector<kernel::Var> blocks;
    std::vector<Value> masks;
    for (int v = 0; v < vectors_; ++v) {
      totals.emplace_back(b_, reduce.op, identity);
      blocks.push_back(b_.var(type, identity));
      masks.push_back(lanes_ > 1 ? b_.tail_mask(columns - (first + v * lanes_), lanes_) : first + v < columns);
    }
    const Value rows = context_.dim(program_.points(dims_.reduced));
    const auto add_row = [&](Value row) {
      Scope row_scope(emitter_, {{dims_.outer, outer, 1}, {dims_.reduced, row, 1}}, {}, &top);
      for (int v = 0; v < vectors_; ++v) {
        const Value at = first + v * lanes_;
        Scope scope(emitter_, {{dims_.outer, outer, 1}, {dims_.reduced, row, 1}, {dims_.columns, at, lanes_}},
                    masks[v], &row_scope);
        const Value value = b_.broadcast(emitter_.emit(reduce.args[0], scope), lanes_);
        const auto& var = blocks[v];
        b_.set(var, b_.apply(reduce.op, {b_.get(var), value}));
      }
    };
    for_blocks(b_, 0, rows, 1, add_row, [&] {
      for (std::size_t v = 0; v < totals.size(); ++v) {
        totals[v].add(b_.get(blocks[v]));
        b_.set(blocks[v], identity);
      }
    });
    for (int v = 0; v < vectors_; ++v) {
      const auto at = static_cast<std::size_t>(v);
      Scope scope(emitter_, {{dims_.outer, outer, 1}, {dims_.columns, first + v * lanes_, lanes_}}, masks[at], &top);
      const ElementwiseStore& store = program_.stores[0];
      emitter_.store(store.node, reduce.dtype, store.form, rounded(b_, totals[at].get(), reduce.dtype), scope);
    }
  }

  KernelContext context_;
  ElementwiseProgram program_;
  const ColumnSpace dims_;
  ElementwiseEmitter emitter_;
  kernel::Builder& b_;
  int lanes_ = 1, vectors_ = 1, reduce_ = 0;  ///< vectors: per block of columns
};

}  // namespace

std::vector<KernelContext::Built> lower_columns(const CpuContext& context, const Region& region) {
  if (const int columns = column_dims(context.graph, region.members[0], task_elements(context.cpu)); columns > 0) {
    Region by_rows = region;
    by_rows.form = RowsRegion{.inner = columns};
    return lower_rows(context, by_rows);
  }
  std::vector<KernelContext::Built> built;
  built.push_back(ColumnKernel(context, region).run());
  return built;
}

}  // namespace lathe::cpu
