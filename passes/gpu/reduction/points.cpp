#include <algorithm>

#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/program_vectors.h"
#include "passes/lowering/elementwise/row_space.h"

namespace lathe::gpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Whether all floats that it stores have 16 bits.
bool rounds_to_16_bits(const ElementwiseProgram& program) {
  const auto is_wide = [&](const ElementwiseStore& store) {
    const DType dtype = program[store.value].dtype;
    return is_float(dtype) && compute_type(dtype) == dtype;
  };
  return std::none_of(program.stores.begin(), program.stores.end(), is_wide);
}

}  // namespace

KernelContext::Built lower_points(const GpuContext& lowering, const Region& region) {
  KernelContext context("points", KernelRole::elementwise);
  const ElementwiseProgram program = region_program(lowering.graph, lowering.plan, region);
  ElementwiseEmitter emitter(context, program, lowering.buffer_of);
  if (rounds_to_16_bits(program)) emitter.approximate();
  declare_buffers(context, {&program}, lowering);
  const RowSpace space(program, region.rows().inner, program_vectors(program, lowering.vectors()));
  kernel::Builder& b = context.builder;
  Scope top(emitter, {});
  emitter.hoist(top);
  const Dim width = program.points(space.inner);
  const Value n = context.dim(width);
  const auto store_row = [&](const std::vector<IndexGroup>& row, Value at) {
    unmasked_or_masked(b, at, n, space.lanes, width, [&](Value mask) {
      auto groups = row;
      groups.push_back({space.inner, at, space.lanes});
      Scope scope(emitter, std::move(groups), mask, &top);
      emitter.store_all(scope);
    });
  };
  if (space.outer.empty()) {
    for_threads(b, n, space.lanes, [&](Value at) { store_row({}, at); });
  } else {
    // Vectors are numbered row by row, so that short rows fill the blocks too.
    const Value a_row = b.ceil_div(n, space.lanes);
    for_threads(b, context.dim(program.points(space.outer)) * a_row, 1,
                [&](Value i) { store_row({{space.outer, i / a_row, 1}}, i % a_row * space.lanes); });
  }
  return context.finish();
}

}  // namespace lathe::gpu
