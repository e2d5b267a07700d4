#include "passes/gpu/gemm/product_parts.h"

#include <algorithm>

#include "passes/gpu/gemm/tile_order.h"

namespace lathe::gpu {

using kernel::Value;

ProductParts::ProductParts(const GpuContext& lowering, const Region& region)
    : lowering_(lowering),
      operands(lowering, lowering.graph[region.members[0]]),
      context_("product", KernelRole::product),
      program_(region_program(lowering.graph, lowering.plan, region)),
      epilogue_(context_, program_, lowering.buffer_of),
      left_loads_(context_, operands.left.operand.program, lowering.buffer_of),
      right_loads_(context_, operands.right.operand.program, lowering.buffer_of),
      top_(epilogue_, {}),
      left{operands.left, left_loads_, {left_loads_, {}}, operands.m},
      right{operands.right, right_loads_, {right_loads_, {}}, operands.n} {
  context_.multiplies_by(Multiplier::fma);
  if (compute_type(operands.dtype) != operands.dtype) epilogue_.approximate();
}

void ProductParts::start(const std::vector<const ElementwiseProgram*>& programs) {
  declare_buffers(context_, programs, lowering_);
  const auto hoist = [&](ElementwiseEmitter& emitter, ElementwiseEmitter::Scope& top) {
    if (std::find(programs.begin(), programs.end(), &emitter.program()) != programs.end()) emitter.hoist(top);
  };
  hoist(epilogue_, top_);
  hoist(left_loads_, left.top);
  hoist(right_loads_, right.top);
  m = context_.dim(operands.m), n = context_.dim(operands.n), k = context_.dim(operands.k);
}

ProductParts::Tiling ProductParts::tiling(int rows, int columns, int splits) {
  kernel::Builder& b = builder();
  const Value down = b.ceil_div(m, rows), across = b.ceil_div(n, columns), each = down * across;
  return {rows, columns, splits, down, across, each, context_.dim(operands.batch * Dim(splits)) * each};
}

std::pair<ProductParts::Position, Value> ProductParts::unit(const Tiling& t, Value i) {
  const auto tiles = [](const Dim& size, std::int64_t of) -> std::optional<std::int64_t> {
    if (!size.value()) return std::nullopt;
    return (*size.value() + of - 1) / of;
  };
  const int band_rows = rows_per_band({t.rows, t.columns, tiles(operands.m, t.rows), tiles(operands.n, t.columns)},
                                      lowering_.gpu.multiprocessors);
  const auto [row, column] = tile_in_bands(i % t.each, t.down, t.across, band_rows);
  const Value number = i / t.each;
  return {{number / t.splits, row * t.rows, column * t.columns}, number % t.splits};
}

void ProductParts::for_tiles(int rows, int columns, int splits,
                             const std::function<void(const Position&, Value)>& block) {
  const Tiling all = tiling(rows, columns, splits);
  const auto one = [&](Value i) {
    const auto [at, number] = unit(all, i);
    block(at, number);
  };
  builder().for_loop(0, all.count, 1, one, kernel::LoopKind::block_x);
}

KernelContext::Built ProductParts::tiles_in_turn(int rows, int columns, const Partial* partial,
                                                 const std::function<void(const Tiling&)>& blocks) {
  if (partial) {
    start({&operands.left.operand.program, &operands.right.operand.program});
    context_.declare(partial->buffer, f32, false, true);
  } else {
    start({&program_, &operands.left.operand.program, &operands.right.operand.program});
  }
  blocks(tiling(rows, columns, partial ? partial->splits : 1));
  return take();
}

KernelContext::Built ProductParts::take() {
  auto built = context_.finish();
  built.launch.flops = Dim(2) * operands.batch * operands.m * operands.n * operands.k;
  return built;
}

KernelContext::Built ProductParts::tiles(int rows, int columns, const std::function<void(const Position&)>& block) {
  start({&program_, &operands.left.operand.program, &operands.right.operand.program});
  for_tiles(rows, columns, 1, [&](const Position& at, Value) { block(at); });
  return take();
}

ProductParts::Partial ProductParts::partial(int rows, int columns, int splits) const {
  const auto whole = [](const Dim& size, std::int64_t of) { return (*size.value() + of - 1) / of * of; };
  Partial result{.splits = splits, .rows = whole(operands.m, rows), .columns = whole(operands.n, columns)};
  const Dim elements = operands.batch * Dim(splits * result.rows * result.columns);
  result.buffer = lowering_.workspace(f32, elements, "partial sums");
  return result;
}

Value ProductParts::first_partial(const Partial& partial, const Position& at, Value number) {
  const Value batches = context_.dim(operands.batch);
  return ((number * batches + at.batch) * partial.rows + at.m) * partial.columns + at.n;
}

KernelContext::Built ProductParts::tiles_of_splits(int rows, int columns, const Partial& partial,
                                                   const std::function<void(const Position&, Value)>& block) {
  start({&operands.left.operand.program, &operands.right.operand.program});
  context_.declare(partial.buffer, f32, false, true);
  for_tiles(rows, columns, partial.splits, block);
  return take();
}

KernelContext::Built ProductParts::combine(const Partial& partial) {
  kernel::Builder& b = builder();
  const int lanes = lowering_.gpu.vectors.lanes(f32);
  context_.declare(partial.buffer, f32, true, false);
  start({&program_});
  const Value across = b.ceil_div(n, lanes), split = context_.dim(operands.batch) * (partial.rows * partial.columns);
  for_threads(b, context_.dim(operands.batch) * m * across, 1, [&](Value at) {
    const Value column = at % across * lanes, row = at / across % m, batch = at / across / m;
    const Value first = (batch * partial.rows + row) * partial.columns + column;
    const kernel::Var sum = b.var({f32, lanes}, b.constant(f32, 0));
    b.for_loop(0, partial.splits, 1, [&](Value i) {
      b.set(sum, b.get(sum) + b.load(context_.buffer(partial.buffer), i * split + first, lanes));
    });
    finish(batch, row, column, rounded(b, b.get(sum), operands.dtype));
  });
  auto built = context_.finish();
  built.launch.info.role = KernelRole::combine_splits;
  built.launch.info.multiplier = Multiplier::none;
  return built;
}

void ProductParts::bring(Side& side, Value batch, Value row, Value at_k, kernel::Var into) {
  kernel::Builder& b = builder();
  const bool along_k = side.along_k();
  const Value rows = context_.dim(side.rows);
  clear(b, {&into, 1});
  b.if_(row < rows && at_k < k, [&] {
    set_inside(b, into, along_k ? at_k : row, along_k ? k : rows, along_k ? operands.k : side.rows, [&](Value mask) {
      return side.operand.load(side.loads, side.top, batch, row, at_k, side.operand.axis, into.type.lanes, mask);
    });
  });
}

void ProductParts::finish(Value batch, Value at_m, Value at_n, Value sums) {
  kernel::Builder& b = builder();
  b.if_(at_m < m && at_n < n, [&] {
    unmasked_or_masked(b, at_n, n, sums.type.lanes, operands.n,
                       [&](Value mask) { finish_inside(batch, at_m, at_n, sums, mask); });
  });
}

void ProductParts::finish_inside(Value batch, Value at_m, Value at_n, Value sums, Value mask) {
  ElementwiseEmitter::Scope scope(
      epilogue_,
      {{operands.batch_dims, batch, 1}, {operands.m_dims, at_m, 1}, {operands.n_dims, at_n, sums.type.lanes}}, mask,
      &top_);
  scope.bind(0, sums);
  epilogue_.store_all(scope);
}

bool ProductParts::only_reads(ir::ValueId node) const {
  return std::none_of(program_.stores.begin(), program_.stores.end(), [&](const ElementwiseStore& store) {
    return lowering_.buffer_of(store.node) == lowering_.buffer_of(node);
  });
}

}  // namespace lathe::gpu
