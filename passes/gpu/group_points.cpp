#include "passes/gpu/group_points.h"

#include <algorithm>

#include "passes/gpu/attention_known_rows.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/group_sums.h"

namespace lathe::gpu {

using kernel::Value;
using Kind = PointInstruction::Kind;

GroupPoints::GroupPoints(const AttentionPlan& plan, KernelContext& context, PointEmitter& emitter,
                         const GroupColumnsParts& parts, int rows)
    : plan_(plan), context_(context), b_(context.builder), emitter_(emitter), parts_(parts), rows_(rows) {
  find_kept();
}

/// Whether it is better kept than computed again.
bool GroupPoints::costs(int value) const {
  const PointInstruction& i = emitter_.program()[value];
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
  return std::any_of(i.args.begin(), i.args.end(), [this](int arg) { return costs(arg); });
}

bool GroupPoints::depends_on(int value, int dim) const {
  return (emitter_.program().depends[static_cast<std::size_t>(value)] >> dim & 1) != 0;
}

/// Of what the values read, what varies along the rows alone, or along the columns alone. Values of rows are kept as
/// far as registers go: for some rows at once, beside the sums and scores.
void GroupPoints::find_kept() {
  const AttentionParts& parts = plan_.attention.parts;
  const PointProgram& program = emitter_.program();
  const std::vector<int> values = summed_over_rows(plan_);
  const NeededOfRows needed = needed_of_rows(plan_, values);
  std::vector<bool> read(program.code.size(), false);  // by what varies along both
  const auto varies = [&](int i) { return depends_on(i, parts.row_dim) && depends_on(i, parts.columns_dim); };
  int registers = GroupSums::registers(parts_.ends) + static_cast<int>(parts_.scores.size()) * rows_ / 2;
  for (int i = 0; i < program.size(); ++i) {
    if (!needed.all[static_cast<std::size_t>(i)] || !varies(i)) continue;
    for (const int arg : program[i].args) read[static_cast<std::size_t>(arg)] = true;
    const Kind kind = program[i].kind;
    if (kind == Kind::load || kind == Kind::gather || kind == Kind::random) registers += 8;  // addresses, counters
  }
  for (int i = 0; i < program.size(); ++i) {
    if (!read[static_cast<std::size_t>(i)] || varies(i) || !costs(i)) continue;
    if (depends_on(i, parts.columns_dim))
      of_columns_.push_back(i), registers += rows_of_thread;
    else if (depends_on(i, parts.row_dim) && size_in_bytes(compute_type(program[i].dtype)) <= sizeof(float))
      of_rows_.push_back(i), registers += rows_ / row_step * pair;
  }
  constexpr int room = 184;  // of 240, found with ptxas
  if (registers > room) of_rows_.clear();
  fixed_ = needed_of_rows(plan_, values, of_rows_).fixed;
}

void GroupPoints::declare() {
  scores_.clear();
  for (std::size_t i = 0; i < parts_.scores.size(); ++i) scores_.push_back(zero_vectors(b_, {f32, rows_ / 2}, 1)[0]);
}

void GroupPoints::enter(Value outer, Value column, Value thread, const Scope* top) {
  const AttentionParts& parts = plan_.attention.parts;
  const std::uint64_t row = std::uint64_t{1} << parts.row_dim;
  outer_ = outer, thread_ = thread;
  columns_.clear(), column_scopes_.clear();
  outer_scope_ = std::make_unique<Scope>(emitter_, std::vector<IndexGroup>{{parts.outer, outer, 1}}, Value{}, top);
  emitter_.hoist(*outer_scope_, row | plan_.attention.columns());
  const Value last = context_.dim(plan_.attention.column_count) - 1;
  for (int c = 0; c < rows_of_thread; ++c) {
    columns_.push_back(min(column + first_row(thread) + c * row_step, last));
    column_scopes_.push_back(std::make_unique<Scope>(
        emitter_, std::vector<IndexGroup>{{parts.outer, outer, 1}, {{parts.columns_dim}, columns_.back(), 1}},
        Value{}, outer_scope_.get()));
    for (const int i : of_columns_) emitter_.emit(i, *column_scopes_.back());
  }
}

Value GroupPoints::inside(Value row) {
  const auto known = plan_.attention.rows.value();
  const bool whole = known && *known % GroupColumnsTile::rows == 0;
  return whole ? Value{} : b_.tail_mask(context_.dim(plan_.attention.rows) - row, pair);
}

GroupPoints::Scope GroupPoints::rows_scope(Value row, Value mask) {
  const AttentionParts& parts = plan_.attention.parts;
  return {emitter_, {{parts.outer, outer_, 1}, {{parts.row_dim}, row, pair}}, mask, outer_scope_.get()};
}

void GroupPoints::each_pair(Value row, const std::function<void(Value row, Value i)>& body) {
  const auto pairs = [&](Value i) { body(row + i * row_step + first_column(thread_), i); };
  b_.for_loop(0, rows_ / row_step, 1, pairs, kernel::LoopKind::unroll);
}

void GroupPoints::begin(Value row) {
  const PointProgram& program = emitter_.program();
  kept_.clear();
  for (const int i : of_rows_)
    kept_.push_back(
        b_.alloc(compute_type(program[i].dtype), rows_ / row_step * pair, kernel::Space::register_, "of_rows"));
  if (!of_rows_.empty())
    each_pair(row, [&](Value first, Value i) {
      const Value mask = inside(first);
      Scope rows = rows_scope(first, mask);
      bind_known_rows(context_, plan_, rows, outer_, first, pair, mask);
      for (std::size_t k = 0; k < of_rows_.size(); ++k)
        b_.store(kept_[k], i * pair, b_.broadcast(emitter_.emit(of_rows_[k], rows), pair));
    });
  for (const kernel::Var scores : scores_) b_.set(scores, b_.constant(f32, 0, scores.type.lanes));
}

void GroupPoints::make_weights(Value row) {
  const AttentionParts& parts = plan_.attention.parts;
  const PointProgram& program = emitter_.program();
  const int elements = rows_ / 2;
  std::vector<kernel::Buffer> sums;
  for (const kernel::Var scores : scores_) {
    sums.push_back(b_.alloc(f32, elements, kernel::Space::register_, "scores"));
    b_.store(sums.back(), 0, b_.get(scores));
  }
  weights_.clear();
  for (std::size_t e = 0; e < parts_.ends.size(); ++e)
    weights_.push_back(b_.alloc(plan_.tile.held, elements, kernel::Space::register_, "weights"));
  each_pair(row, [&](Value first, Value i) {
    const Value mask = inside(first);
    Scope rows = rows_scope(first, mask);
    for (std::size_t k = 0; k < of_rows_.size(); ++k) rows.bind(of_rows_[k], b_.load(kept_[k], i * pair, pair));
    bind_known_rows(context_, plan_, rows, outer_, first, pair, mask);
    for (const int value : fixed_) emitter_.emit(value, rows);
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      Scope point(emitter_,
                  {{parts.outer, outer_, 1}, {{parts.row_dim}, first, pair}, {{parts.columns_dim}, columns_[c], 1}},
                  mask, &rows);
      for (const int value : of_columns_) point.bind(value, *column_scopes_[c]->find(value));
      for (std::size_t s = 0; s < sums.size(); ++s) {
        const int value = parts_.scores[s]->value;
        point.bind(value, rounded(b_, b_.load(sums[s], element(i, c), pair), program[value].dtype));
      }
      for (std::size_t e = 0; e < parts_.ends.size(); ++e) {
        const Value weight = b_.broadcast(emitter_.emit(parts_.ends[e]->value, point), pair);
        const Value here = mask ? b_.select(mask, weight, b_.constant(weight.type.scalar, 0, pair)) : weight;
        b_.store(weights_[e], element(i, c), b_.cast(here, plan_.tile.held));
      }
    }
  });
}

Value GroupPoints::weights(std::size_t end) const { return b_.load(weights_[end], 0, rows_ / 2); }

}  // namespace lathe::gpu
