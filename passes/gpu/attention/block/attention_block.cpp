#include "passes/gpu/attention/block/attention_block.h"

#include <algorithm>

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Kind = ElementwiseInstruction::Kind;

namespace {

ElementwiseProgram program_with(const AttentionPlan& plan, std::vector<ElementwiseStore> stores) {
  ElementwiseProgram program = plan.attention.program;
  program.stores = std::move(stores);
  return program;
}

/// Returns the vectors of depth sums that a thread holds per position, for all matmuls together.
int most_vectors(const AttentionTile& tile) { return tile.compute == f64 ? 8 : 4; }

}  // namespace

AttentionBlock::AttentionBlock(const AttentionPlan& plan, std::optional<OutputProducts> which,
                               std::vector<ElementwiseStore> stores, std::string name, KernelRole role)
    : context(std::move(name), role),
      b(context.builder),
      program(program_with(plan, std::move(stores))),
      emitter(context, program, plan.lowering.buffer_of),
      steps(context, plan.tile),
      scores(context, plan.lowering, plan.attention.parts, plan.tile, steps),
      plan_(plan),
      tile_(plan.tile),
      top_(emitter, {}) {
  context.multiplies_by(tile_.tensor_cores() ? Multiplier::mma : Multiplier::fma);
  if (tile_.tensor_cores()) emitter.round_at_the_end();
  const auto& all = plan.attention.parts.outputs;
  const auto wanted = [&](const AttentionParts::OutputProduct& output) {
    return which && output.over_rows == (*which == OutputProducts::over_rows);
  };
  const auto count = std::count_if(all.begin(), all.end(), wanted);
  const int vectors = std::max(1, most_vectors(tile_) / std::max(1, static_cast<int>(count)));
  for (const AttentionParts::OutputProduct& output : all)
    if (wanted(output))
      sums.push_back(std::make_unique<AttentionSums>(context, plan.lowering, output, tile_, vectors, steps));
  if (!plan.online)
    for (const ElementwiseInstruction& i : program.code)
      if (i.kind == Kind::reduce &&
          std::find(reduced_.begin(), reduced_.end(), compute_type(i.dtype)) == reduced_.end())
        reduced_.push_back(compute_type(i.dtype));
  if (std::find(reduced_.begin(), reduced_.end(), boolean) == reduced_.end()) reduced_.push_back(boolean);
}

void AttentionBlock::begin(const std::vector<std::pair<int, DType>>& written,
                           const std::vector<std::pair<int, DType>>& read) {
  std::vector<const ElementwiseProgram*> programs = {&program};
  scores.add_programs(programs);
  for (const auto& sum : sums) sum->add_programs(programs);
  declare_buffers(context, programs, plan_.lowering);
  for (const auto& [buffer, dtype] : written) context.declare(buffer, dtype, false, true);
  for (const auto& [buffer, dtype] : read) context.declare(buffer, dtype, true, false);
  row_count = context.dim(plan_.attention.rows);
  column_count = context.dim(plan_.attention.column_count);
  emitter.hoist(top_);
  scores.hoist();
  for (auto& sum : sums) sum->hoist();
}

Value AttentionBlock::depth_blocks() {
  Value most = b.index(1);
  for (const auto& sum : sums) most = max(most, b.ceil_div(context.dim(sum->part().depth), sum->width()));
  return most;
}

void AttentionBlock::threads(Value depth_block, const std::function<void(const AttentionThread&)>& body) {
  std::int64_t right = scores.right_elements();
  for (const auto& sum : sums) right = std::max(right, sum->shared_elements());
  const auto shared = [&](DType dtype, std::int64_t count, const char* name) {
    return b.alloc(dtype, count, kernel::Space::shared, name);
  };
  const kernel::Buffer left = shared(tile_.held, steps.slots() * scores.left_elements(), "left");
  const kernel::Buffer other = shared(tile_.held, steps.slots() * right, "right");
  scores.pass_through(left, other, right,
                      tile_.tensor_cores() ? shared(f32, scores.exchanged_elements(), "exchange") : kernel::Buffer{});
  if (!sums.empty()) {
    const kernel::Buffer weights = shared(tile_.held, sums[0]->weight_elements(), "weights");
    for (auto& sum : sums) sum->pass_through(other, right, weights);
  }
  if (plan_.online && tile_.tensor_cores()) of_rows_ = shared(f32, tile_.span(), "of_rows");
  tree_.emplace(b, reduced_, AttentionTile::threads);
  const auto thread = [&](Value slot) {
    steps.begin();
    scores.begin();
    for (auto& sum : sums) sum->begin(depth_block * sum->width());
    body({slot, slot / AttentionTile::side, slot % AttentionTile::side});
  };
  b.for_loop(0, AttentionTile::threads, 1, thread, LoopKind::thread_x);
}

std::vector<IndexGroup> AttentionBlock::row_groups(Value outer, Value row) const {
  const AttentionParts& parts = plan_.attention.parts;
  return {{parts.outer, outer, 1}, {{parts.row_dim}, row, 1}};
}

/// Whether this many positions are known to be whole tiles.
bool AttentionBlock::whole(const Dim& positions) const {
  const auto known = positions.value();
  return known && *known % tile_.span() == 0;
}

AttentionBlock::Scopes AttentionBlock::rows(Value outer, Value first, const AttentionThread& thread) {
  Scopes scopes;
  for (int r = 0; r < tile_.own(); ++r) {
    const Value row = first + thread.y * tile_.own() + r;
    const Value here = whole(plan_.attention.rows) ? row : min(row, row_count - 1);
    scopes.push_back(std::make_unique<Scope>(emitter, row_groups(outer, here), row < row_count, &top_));
  }
  return scopes;
}

void AttentionBlock::start(const std::vector<int>& wanted, const std::vector<AttentionSums*>& added,
                           const ScorePosition& here, std::optional<AttentionSteps::Next> next,
                           const AttentionThread& thread) {
  std::vector<const AttentionSteps::Product*> products;
  for (const int score : wanted) products.push_back(&scores.steps_of(score));
  for (const AttentionSums* sum : added) products.push_back(&sum->steps_of());
  steps.start(std::move(products), here, std::move(next), thread.slot);
}

AttentionBlock::Scopes AttentionBlock::points(Scopes& of_rows, const ScorePosition& tile,
                                              const std::vector<int>& wanted, const AttentionThread& thread) {
  const AttentionParts& parts = plan_.attention.parts;
  for (const int score : wanted) scores.multiply(score, thread);
  const Value column = tile.column + thread.x * tile_.own();
  const Value inside = columns_inside(column);
  Scopes scopes;
  for (int r = 0; r < tile_.own(); ++r) {
    const auto row = static_cast<std::size_t>(r);
    const Value at = tile.row + thread.y * tile_.own() + r;
    auto index = row_groups(tile.outer, whole(plan_.attention.rows) ? at : min(at, row_count - 1));
    index.push_back({{parts.columns_dim}, column, tile_.own()});
    scopes.push_back(std::make_unique<Scope>(emitter, std::move(index), inside, of_rows[row].get()));
    for (const int score : wanted)
      scopes.back()->bind(score, emitter.round(scores.sum(score, r), program[score].dtype));
  }
  return scopes;
}

Value AttentionBlock::columns_inside(Value column) {
  return whole(plan_.attention.column_count) ? Value{} : b.tail_mask(column_count - column, tile_.own());
}

Value AttentionBlock::exists(const Scope& row, const Scope& point) {
  if (whole(plan_.attention.rows)) return point.mask;
  const Value of_row = b.broadcast(row.mask, tile_.own());
  return point.mask ? point.mask && of_row : of_row;
}

void AttentionBlock::add(AttentionSums& sum, Scopes& of_rows, Scopes& of_points, const AttentionThread& thread) {
  if (steps.slots() > 1) b.barrier();  // the previous matmul has read its weights
  for (int r = 0; r < tile_.own(); ++r) {
    const auto row = static_cast<std::size_t>(r);
    const Value weights = b.broadcast(emitter.emit(sum.part().value, *of_points[row]), tile_.own());
    const Value there = exists(*of_rows[row], *of_points[row]);
    sum.put_weights(r, there ? b.select(there, weights, b.constant(tile_.compute, 0, tile_.own())) : weights, thread);
  }
  sum.add(thread);
}

void AttentionBlock::scale(const std::vector<AttentionSums*>& scaled, ScalarOp op, const std::vector<Value>& values,
                           const AttentionThread& thread) {
  if (scaled.empty()) return;
  std::vector<Value> factors;
  for (const Value& value : values) factors.push_back(b.cast(value, tile_.compute));
  if (tile_.tensor_cores()) {
    LATHE_ASSERT(plan_.online);  // otherwise values are rounded after each op, and weights are divided directly
    b.barrier();
    b.if_(equal(thread.x, 0), [&] {
      for (std::size_t r = 0; r < values.size(); ++r)
        b.store(of_rows_, thread.y * tile_.own() + static_cast<std::int64_t>(r), factors[r]);
    });
    b.barrier();
    const WarpPart part(thread.slot, tile_.span());
    factors = {b.load(of_rows_, part.pair_row(b.index(0))), b.load(of_rows_, part.pair_row(b.index(1)))};
  }
  for (AttentionSums* sum : scaled) sum->scale(op, factors);
}

Value AttentionBlock::reduce_row(ScalarOp op, Value value, const AttentionThread& thread) {
  if (plan_.online) return reduce_in_warp(b, op, value, thread.slot % kernel::warp_threads, AttentionTile::side);
  return reduce(op, value, thread.slot, thread.x, AttentionTile::side);
}

Value AttentionBlock::all(Value condition, const AttentionThread& thread) {
  return reduce(ScalarOp::logical_and, condition, thread.slot, thread.slot, AttentionTile::threads);
}

Value AttentionBlock::reduce(ScalarOp op, Value value, Value slot, Value index, int width) {
  const auto at = std::find(reduced_.begin(), reduced_.end(), value.type.scalar) - reduced_.begin();
  const Value combined = tree_->reduce({static_cast<std::size_t>(at)}, {op}, {value}, slot, index, width)[0];
  b.barrier();  // the memory is reused
  return combined;
}

}  // namespace lathe::gpu
