#include "passes/gpu/attention/wgmma/wgmma_elementwise.h"

#include <algorithm>

#include "passes/gpu/attention/attention_known_rows.h"
#include "passes/gpu/attention/wgmma/wgmma_sums.h"
#include "passes/gpu/gpu_kernels.h"

namespace lathe::gpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;

WgmmaElementwise::WgmmaElementwise(const AttentionPlan& plan, KernelContext& context, ElementwiseEmitter& emitter,
                                   const WgmmaOutputParts& parts, const WgmmaOutputTile& tile)
    : plan_(plan),
      context_(context),
      b_(context.builder),
      emitter_(emitter),
      parts_(parts),
      at_once_(tile.at_once),
      own_dim_(parts.over_rows ? plan.attention.parts.columns_dim : plan.attention.parts.row_dim),
      streamed_dim_(parts.over_rows ? plan.attention.parts.row_dim : plan.attention.parts.columns_dim),
      always_inside_(parts.ordered && are_whole_tiles(plan, tile.rows)),
      sums_own_(parts.ordered != nullptr),
      own_count_(parts.over_rows ? plan.attention.column_count : plan.attention.rows),
      streamed_count_(parts.over_rows ? plan.attention.rows : plan.attention.column_count) {
  emitter_.round_at_the_end();
  const GpuInfo& gpu = plan.lowering.gpu;
  find_saved(tile.blocks.registers(gpu) - attention_registers.others);
}

namespace {

/// Whether a result should be saved instead of recomputed; `cost` has the answer for its args.
bool costs(const ElementwiseInstruction& i, const std::vector<bool>& cost) {
  switch (i.kind) {
    case Kind::constant:
    case Kind::index:
    case Kind::in_bounds: return false;
    case Kind::load:
    case Kind::checked:
    case Kind::gather:
    case Kind::row_sum:
    case Kind::random:
    case Kind::reduce:
    case Kind::column:
    case Kind::accumulator: return true;
    case Kind::scalar: break;
  }
  return std::any_of(i.args.begin(), i.args.end(), [&](int arg) { return bool(cost[arg]); });
}

}  // namespace

bool WgmmaElementwise::depends_on(int value, int dim) const {
  return (emitter_.program().depends[value] >> dim & 1) != 0;
}

/// Finds the inputs of the values that vary along the streamed positions alone, or along the others alone. The former
/// are saved if registers suffice: for `at_once_` positions at a time, in addition to the sums and scores.
void WgmmaElementwise::find_saved(int most_registers) {
  const ElementwiseProgram& program = emitter_.program();
  const NeededOfRows needed = needed_of_rows(plan_, parts_.values());
  std::vector<bool> cost;
  for (const ElementwiseInstruction& i : program.code) cost.push_back(costs(i, cost));
  std::vector<bool> read(program.code.size(), false);  // by instructions that vary along both
  const auto varies = [&](int i) { return depends_on(i, own_dim_) && depends_on(i, streamed_dim_); };
  int registers = WgmmaSums::registers(parts_.outputs) + static_cast<int>(parts_.scores.size()) * at_once_ / 2;
  for (int i = 0; i < program.size(); ++i) {
    if (!needed.all[i] || !varies(i)) continue;
    for (const int arg : program[i].args) read[arg] = true;
    const Kind kind = program[i].kind;
    if (kind == Kind::load || kind == Kind::gather || kind == Kind::random) registers += 8;  // addresses, counters
  }
  for (int i = 0; i < program.size(); ++i) {
    if (!read[i] || varies(i) || !cost[i]) continue;
    if (depends_on(i, own_dim_))
      of_own_.push_back(i), registers += rows_of_thread;
    else if (depends_on(i, streamed_dim_) && size_in_bytes(compute_type(program[i].dtype)) <= sizeof(float))
      of_streamed_.push_back(i), registers += at_once_ / row_step * pair;
  }
  if (registers > most_registers) of_streamed_.clear();
  const NeededOfRows others = needed_of_rows(plan_, parts_.values(), of_streamed_);
  for (int i = 0; i < program.size(); ++i)
    if (others.all[i] && depends_on(i, streamed_dim_) && !varies(i) && program[i].kind != Kind::reduce)
      made_of_streamed_.push_back(i);
}

void WgmmaElementwise::declare() {
  scores_.clear();
  for (std::size_t i = 0; i < parts_.scores.size(); ++i)
    scores_.push_back(zero_vectors(b_, {f32, at_once_ / 2}, 1)[0]);
}

void WgmmaElementwise::bind_reductions(Scope& scope, Value row, int lanes, Value mask) {
  bind_known_rows(context_, plan_, scope, outer_, row, lanes, mask);
}

void WgmmaElementwise::enter(Value outer, Value first, Value thread, const Scope* top) {
  const AttentionParts& parts = plan_.attention.parts;
  outer_ = outer, first_own_ = first, thread_ = thread;
  own_.clear(), own_scopes_.clear(), own_inside_.clear();
  outer_scope_ = std::make_unique<Scope>(emitter_, std::vector<IndexGroup>{{parts.outer, outer, 1}}, Value{}, top);
  emitter_.hoist(*outer_scope_, std::uint64_t{1} << own_dim_ | std::uint64_t{1} << streamed_dim_);
  const Value last = context_.dim(own_count_) - 1;
  for (int c = 0; c < rows_of_thread; ++c) {
    const Value own = first + first_row(thread) + c * row_step;
    own_.push_back(min(own, last));
    own_inside_.push_back(own <= last);
    // Without any position of their own, threads load nothing.
    const Value mask = sums_own_ && !own_count_.value() ? own_inside_.back() : Value{};
    own_scopes_.push_back(std::make_unique<Scope>(
        emitter_, std::vector<IndexGroup>{{parts.outer, outer, 1}, {{own_dim_}, own_.back(), 1}}, mask,
        outer_scope_.get()));
    if (!parts_.over_rows) bind_reductions(*own_scopes_.back(), own_.back(), 1, {});
    for (const int i : of_own_) emitter_.emit(i, *own_scopes_.back());
  }
}

Value WgmmaElementwise::inside(Value first) {
  const auto known = streamed_count_.value();
  const bool whole = known && *known % WgmmaOutputTile::streamed == 0;
  return whole ? Value{} : b_.tail_mask(context_.dim(streamed_count_) - first, pair);
}

WgmmaElementwise::Scope WgmmaElementwise::streamed_scope(Value first, Value mask) {
  const AttentionParts& parts = plan_.attention.parts;
  return {emitter_, {{parts.outer, outer_, 1}, {{streamed_dim_}, first, pair}}, mask, outer_scope_.get()};
}

void WgmmaElementwise::each_pair(Value first, const std::function<void(Value first, Value i)>& body) {
  const auto pairs = [&](Value i) { body(first + i * row_step + first_column(thread_), i); };
  b_.for_loop(0, at_once_ / row_step, 1, pairs, kernel::LoopKind::unroll);
}

void WgmmaElementwise::begin(Value first) {
  const ElementwiseProgram& program = emitter_.program();
  saved_.clear();
  for (const int i : of_streamed_)
    saved_.push_back(b_.alloc(compute_type(program[i].dtype), at_once_ / row_step * pair, kernel::Space::register_,
                              "of_streamed"));
  const auto keep = [&](Value here, Value i) {
    const Value mask = inside(here);
    Scope streamed = streamed_scope(here, mask);
    if (parts_.over_rows) bind_reductions(streamed, here, pair, mask);
    for (std::size_t k = 0; k < of_streamed_.size(); ++k)
      b_.store(saved_[k], i * pair, b_.broadcast(emitter_.emit(of_streamed_[k], streamed), pair));
  };
  if (!of_streamed_.empty()) each_pair(first, keep);
}

void WgmmaElementwise::make_weights(Value first) {
  const AttentionParts& parts = plan_.attention.parts;
  const int elements = at_once_ / 2;
  std::vector<kernel::Buffer> sums;
  for (const kernel::Var scores : scores_) {
    sums.push_back(b_.alloc(f32, elements, kernel::Space::register_, "scores"));
    b_.store(sums.back(), 0, b_.get(scores));
  }
  weights_.clear();
  for (std::size_t e = 0; e < parts_.outputs.size(); ++e)
    weights_.push_back(b_.alloc(plan_.tile.held, elements, kernel::Space::register_, "weights"));
  const auto make = [&](bool whole, Value here, Value i) {
    const Value mask = whole ? Value{} : inside(here);
    Scope streamed = streamed_scope(here, mask);
    if (whole)
      for (const auto& [comparison, holds] : plan_.attention.bounds.inside)
        streamed.bind(comparison, b_.constant_int(boolean, holds));
    for (std::size_t k = 0; k < of_streamed_.size(); ++k)
      streamed.bind(of_streamed_[k], b_.load(saved_[k], i * pair, pair));
    if (parts_.over_rows) bind_reductions(streamed, here, pair, mask);
    for (const int value : made_of_streamed_) emitter_.emit(value, streamed);
    for (std::size_t c = 0; c < own_.size(); ++c) {
      Value exists = mask;
      if (sums_own_ && !whole) {
        const Value own = b_.broadcast(own_inside_[c], pair);
        exists = mask ? mask && own : own;
      }
      Scope point(emitter_, {{parts.outer, outer_, 1}, {{streamed_dim_}, here, pair}, {{own_dim_}, own_[c], 1}},
                  exists, &streamed);
      for (const int value : of_own_) point.bind(value, *own_scopes_[c]->find(value));
      for (std::size_t s = 0; s < sums.size(); ++s) {
        const int value = parts_.scores[s]->value;
        point.bind(value, b_.load(sums[s], element(i, c), pair));
      }
      for (std::size_t e = 0; e < parts_.outputs.size(); ++e) {
        const Value weight = b_.broadcast(emitter_.emit(parts_.outputs[e]->value, point), pair);
        const Value there = exists ? b_.select(exists, weight, b_.constant(weight.type.scalar, 0, pair)) : weight;
        b_.store(weights_[e], element(i, c), b_.cast(there, plan_.tile.held));
      }
    }
  };
  const auto made = [&](bool whole) { each_pair(first, [&](Value here, Value i) { make(whole, here, i); }); };
  if (always_inside_) return made(true);
  b_.if_(all_inside(first), [&] { made(true); }, [&] { made(false); });
}

/// Whether the streamed positions from `first` on exist and no comparison excludes one of them for any of the
/// warpgroup's own positions.
Value WgmmaElementwise::all_inside(Value first) {
  const ColumnBounds& bounds = plan_.attention.bounds;
  const Value end = first + at_once_;
  const Value own = first_own_ + thread_ / kernel::warpgroup_threads * kernel::wgmma_rows;
  Value all = end <= context_.dim(streamed_count_);
  if (sums_own_) all = all && own + kernel::wgmma_rows <= context_.dim(own_count_);
  if (bounds.inside.empty()) return all;
  const Value last_column = parts_.over_rows ? own + (kernel::wgmma_rows - 1) : end - 1;
  return all && last_column <= (parts_.over_rows ? first : own) + context_.dim(*bounds.upper);
}

Value WgmmaElementwise::weights(std::size_t output) const { return b_.load(weights_[output], 0, at_once_ / 2); }

}  // namespace lathe::gpu
