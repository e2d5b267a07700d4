#include "passes/gpu/gemm/gemv/row_operand.h"

#include <algorithm>

#include "passes/lowering/elementwise/row_loops.h"

namespace lathe::gpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;

namespace {

constexpr std::int64_t chunk_bytes = 12 << 10;  // two blocks of 256 threads leave room for their sums in 48 KiB
constexpr std::int64_t whole_bytes = 16 << 10;  // of rows that are one chunk
constexpr std::int64_t chunk_unit = 64;         // elements; whole vectors
constexpr int most_sums = 32;                   // registers of a thread
constexpr int most_recomputed = 2;              // operations that each thread repeats for the elements that it loads
constexpr std::int64_t most_loaded = 128;       // elements of a row that each thread loads itself
constexpr std::size_t most_in_flight = 8;       // loads of a thread, of up to 16 bytes

bool is_arithmetic(const ElementwiseInstruction& i) { return i.kind == Kind::scalar && i.op != ScalarOp::cast; }

}  // namespace

RowOperand::RowOperand(ProductParts& parts, int rows)
    : parts_(parts),
      program_(parts.operands.left.operand.program),
      b_(parts.builder()),
      levels_(loop_levels(program_)),
      rows_(rows) {
  is_computed_ = std::ranges::any_of(program_.code, [](const auto& i) { return i.kind == Kind::reduce; }) ||
                 std::ranges::count_if(program_.code, is_arithmetic) > most_recomputed;
  const auto size = static_cast<std::int64_t>(size_in_bytes(program_[parts.operands.left.operand.result].dtype));
  chunk_ = std::max(chunk_unit, chunk_bytes / (rows * size) / chunk_unit * chunk_unit);
  if (const auto length = parts.operands.k.value()) {
    const std::int64_t all = (std::max<std::int64_t>(*length, 1) + chunk_unit - 1) / chunk_unit * chunk_unit;
    if (all <= chunk_ || all * rows * size <= whole_bytes) chunk_ = all;
  }
  is_computed_ = is_computed_ || (is_whole() && *parts.operands.k.value() > most_loaded);
  kept_ = loads_of_reductions();
  if (is_computed_) loads_ = loads_along(false);
}

bool RowOperand::is_whole() const {
  const auto length = parts_.operands.k.value();
  return length && *length <= chunk_;
}

std::int64_t RowOperand::shared_bytes(int threads) const {
  if (!is_computed_) return 0;
  const auto size_of = [&](int i) { return static_cast<std::int64_t>(size_in_bytes(program_[i].dtype)); };
  std::int64_t bytes = rows_ * chunk_ * size_of(parts_.operands.left.operand.result);
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::reduce) bytes += std::int64_t{8} * rows_ * (threads / kernel::warp_threads) + 16;
  return bytes + (keeps_first_chunk() ? 0 : bytes_of_kept(kept_));
}

/// Returns the loads along the row that reductions need, or those that the elements need.
std::vector<int> RowOperand::loads_along(bool of_reductions) const {
  std::uint64_t along = 0;
  for (const int d : parts_.operands.left.k) along |= std::uint64_t{1} << d;
  std::vector<bool> needed(static_cast<std::size_t>(program_.size()), false);
  if (!of_reductions) needed[static_cast<std::size_t>(parts_.operands.left.operand.result)] = true;
  std::vector<int> found;
  for (int i = program_.size() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_reduction = program_[i].kind == Kind::reduce;
    if (is_reduction ? of_reductions : needed[at])
      for (const int arg : program_[i].args) needed[static_cast<std::size_t>(arg)] = true;
    if (needed[at] && program_[i].kind == Kind::load && (program_.depends[at] & along) != 0) found.push_back(i);
  }
  return found;
}

/// Returns the loads along the row that reductions need, if there is room for their elements. A thread then loads an
/// element once, and not once per reduction and once more for the result: in a kernel of phases such loads may come
/// from L2 (KernelPhase::awaited).
std::vector<int> RowOperand::loads_of_reductions() const {
  if (!is_computed_ || !is_whole()) return {};
  std::vector<int> found = loads_along(true);
  return bytes_of_kept(found) <= chunk_bytes ? found : std::vector<int>{};
}

std::int64_t RowOperand::bytes_of_kept(const std::vector<int>& loads) const {
  std::int64_t bytes = 0;
  for (const int i : loads) bytes += rows_ * chunk_ * static_cast<std::int64_t>(size_in_bytes(program_[i].dtype));
  return bytes;
}

void RowOperand::keep_first_chunk() {
  if (!is_computed_ || is_whole()) return;
  const std::vector<int> found = loads_along(true);
  if (found.size() == 1 && program_[found[0]].dtype == program_[parts_.operands.left.operand.result].dtype)
    kept_ = found;
}

std::vector<int> RowOperand::reductions(int level) const {
  std::vector<int> found;
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::reduce && levels_[static_cast<std::size_t>(i)] == level) found.push_back(i);
  return found;
}

void RowOperand::allocate(int threads) {
  threads_ = threads;
  if (!is_computed_) return;
  elements_ = b_.alloc(program_[parts_.operands.left.operand.result].dtype, rows_ * chunk_, kernel::Space::shared,
                       "left_rows");
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::reduce)
      partials_[i] = b_.alloc(compute_type(program_[i].dtype), std::int64_t{rows_} * (threads / kernel::warp_threads),
                              kernel::Space::shared, "of_warps");
  for (const int i : kept_)
    loaded_[i] = keeps_first_chunk() ? elements_
                                     : b_.alloc(program_[i].dtype, rows_ * chunk_, kernel::Space::shared, "loaded");
}

std::vector<IndexGroup> RowOperand::at(Value batch, int row) const {
  const ProductOperand& left = parts_.operands.left;
  return {{left.batch, batch, 1}, {left.rows, b_.index(row), 1}};
}

void RowOperand::reduce(Value thread, Value batch, int lanes) {
  scopes_.clear();
  for (int r = 0; r < rows_; ++r) scopes_.emplace_back(parts_.left.loads, at(batch, r), Value{}, &parts_.left.top);
  keep_loads(thread, batch, lanes);
  for (int level = 1; !reductions(level).empty(); ++level) {
    const std::vector<int> which = reductions(level);
    const std::vector<Value> sums = sums_of_thread(which, thread, batch, lanes);
    combine(which, sums, thread);
    for (int r = 0; r < rows_; ++r) emit_fixed(r, level);
  }
}

std::vector<int> RowOperand::all_rows() const {
  std::vector<int> rows;
  for (int r = 0; r < rows_; ++r) rows.push_back(r);
  return rows;
}

/// Runs body(positions, mask) for the vectors of a thread, at thread * lanes + i * threads * lanes before `count`.
/// The body executes `loads` loads per position: if the count is known, as many positions at a time as fit the loads
/// in flight.
void RowOperand::for_vectors(Value thread, Value count, std::optional<std::int64_t> known, int lanes,
                             std::size_t loads,
                             const std::function<void(const std::vector<Value>& at, Value mask)>& body) {
  const std::int64_t step = std::int64_t{threads_} * lanes;
  const auto most = static_cast<std::int64_t>(most_in_flight / std::max<std::size_t>(loads, 1));
  const std::int64_t at_once =
      known ? std::clamp<std::int64_t>(*known / step, 1, std::max<std::int64_t>(most, 1)) : 1;
  const std::int64_t whole = at_once > 1 ? *known / (step * at_once) * (step * at_once) : 0;
  if (whole > 0)
    b_.for_loop(thread * lanes, whole, step * at_once, [&](Value first) {
      std::vector<Value> at;
      for (std::int64_t i = 0; i < at_once; ++i) at.push_back(first + i * step);
      body(at, {});
    });
  if (whole > 0 && whole == *known) return;
  b_.for_loop(whole + thread * lanes, count, step, [&](Value k) {
    unmasked_or_masked(b_, k, count, lanes, known ? Dim(*known) : parts_.operands.k,
                       [&](Value mask) { body({k}, mask); });
  });
}

/// Emits loads of all rows at some positions, one after the other, so that they overlap.
RowOperand::Loaded RowOperand::load_rows(const std::vector<int>& loads, const std::vector<int>& rows, Value batch,
                                         const std::vector<Value>& at, int lanes, Value mask) {
  Loaded loaded;
  for (const Value k : at) {
    loaded.emplace_back();
    for (const int r : rows) {
      auto groups = this->at(batch, r);
      groups.push_back({parts_.operands.left.k, k, lanes});
      Scope scope(parts_.left.loads, std::move(groups), mask, &scopes_[static_cast<std::size_t>(r)]);
      std::vector<Value>& of_row = loaded.back().emplace_back();
      for (const int i : loads) of_row.push_back(parts_.left.loads.emit(i, scope));
    }
  }
  return loaded;
}

/// Loads the elements that a thread needs, as in sum_rows and compute, so that it reads what it stored.
void RowOperand::keep_loads(Value thread, Value batch, int lanes) {
  if (kept_.empty()) return;
  const Value count = is_whole() ? parts_.k : kernel::min(parts_.k, chunk_);
  const auto known = is_whole() ? parts_.operands.k.value() : std::nullopt;
  for_vectors(thread, count, known, lanes, kept_.size() * static_cast<std::size_t>(rows_),
              [&](const std::vector<Value>& at, Value mask) {
                const Loaded loaded = load_rows(kept_, all_rows(), batch, at, lanes, mask);
                for (std::size_t k = 0; k < at.size(); ++k)
                  for (int r = 0; r < rows_; ++r)
                    for (std::size_t i = 0; i < kept_.size(); ++i) {
                      const Value value = b_.broadcast(loaded[k][static_cast<std::size_t>(r)][i], lanes);
                      b_.store(loaded_.at(kept_[i]), r * chunk_ + at[k], b_.cast(value, program_[kept_[i]].dtype),
                               mask);
                    }
              });
}

/// Returns the scope of a row's elements from column `at` on, with the kept ones.
RowOperand::Scope RowOperand::kept_scope(Value batch, int row, Value at, int lanes, Value mask) {
  Scope scope(parts_.left.loads, this->at(batch, row), Value{}, &scopes_[static_cast<std::size_t>(row)]);
  for (const int i : kept_) {
    const Value value = b_.load(loaded_.at(i), row * chunk_ + at, lanes, mask);
    scope.bind(i, b_.cast(value, compute_type(program_[i].dtype)));
  }
  return scope;
}

/// Same, with loaded ones.
RowOperand::Scope RowOperand::loaded_scope(Value batch, int row, const std::vector<int>& loads,
                                           const std::vector<Value>& values) {
  Scope scope(parts_.left.loads, at(batch, row), Value{}, &scopes_[static_cast<std::size_t>(row)]);
  for (std::size_t i = 0; i < loads.size(); ++i) scope.bind(loads[i], values[i]);
  return scope;
}

/// Combines the results of the threads: in each warp, then those of the warps, in the same order in all threads.
void RowOperand::combine(const std::vector<int>& which, const std::vector<Value>& sums, Value thread) {
  const Value lane = thread % kernel::warp_threads, warp = thread / kernel::warp_threads;
  auto sum = sums.begin();
  for (const int i : which)
    for (int r = 0; r < rows_; ++r) {
      const Value value = reduce_with_partners(b_, program_[i].op, *sum++, thread, kernel::warp_threads);
      b_.if_(equal(lane, 0), [&] { b_.store(partials_.at(i), warp * rows_ + r, value); });
    }
  b_.barrier();
  for (const int i : which)
    for (int r = 0; r < rows_; ++r) {
      Value value = b_.load(partials_.at(i), b_.index(r));
      for (int w = 1; w < threads_ / kernel::warp_threads; ++w)
        value = b_.apply(program_[i].op, {value, b_.load(partials_.at(i), b_.index(w * rows_ + r))});
      scopes_[static_cast<std::size_t>(r)].bind(i, rounded(b_, value, program_[i].dtype));
    }
}

/// Emits the values that do not vary along the row, as soon as the reductions of a level are known.
void RowOperand::emit_fixed(int row, int level) {
  std::uint64_t along = 0;
  for (const int d : parts_.operands.left.k) along |= std::uint64_t{1} << d;
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind != Kind::reduce && levels_[static_cast<std::size_t>(i)] == level &&
        (program_.depends[static_cast<std::size_t>(i)] & along) == 0)
      parts_.left.loads.emit(i, scopes_[static_cast<std::size_t>(row)]);
}

/// Returns what a thread adds up, by reduction and row. Some rows are added up at a time, in registers.
std::vector<Value> RowOperand::sums_of_thread(const std::vector<int>& which, Value thread, Value batch, int lanes) {
  const int reductions = static_cast<int>(which.size()), at_once = std::max(1, most_sums / lanes / reductions);
  std::vector<Value> values(which.size() * static_cast<std::size_t>(rows_));
  for (int first = 0; first < rows_; first += at_once) {
    std::vector<RowSum> sums;
    for (int w = 0; w < reductions; ++w)
      for (int r = first; r < std::min(rows_, first + at_once); ++r) sums.push_back({which[w], r, w * rows_ + r});
    sum_rows(sums, thread, batch, lanes);
    for (const RowSum& sum : sums) values[static_cast<std::size_t>(sum.number)] = sum.value;
  }
  return values;
}

Value RowOperand::identity_of(const RowSum& sum, int lanes) const {
  return b_.broadcast(reduction_identity(b_, program_[sum.reduction]), lanes);
}

/// Adds the terms at a position to the sums of some rows. `is_kept`: from shared memory.
void RowOperand::add_terms(const std::vector<RowSum>& sums, Value batch, Value k, int lanes, Value mask,
                           bool is_kept) {
  std::vector<int> rows;
  for (const RowSum& sum : sums)
    if (std::ranges::find(rows, sum.row) == rows.end()) rows.push_back(sum.row);
  const std::vector<int> loads = is_kept ? std::vector<int>{} : loads_along(true);
  const Loaded loaded = load_rows(loads, rows, batch, {k}, lanes, mask);
  for (const RowSum& sum : sums) {
    const auto r = static_cast<std::size_t>(std::ranges::find(rows, sum.row) - rows.begin());
    const Scope of_row =
        is_kept ? kept_scope(batch, sum.row, k, lanes, mask) : loaded_scope(batch, sum.row, loads, loaded[0][r]);
    auto groups = at(batch, sum.row);
    groups.push_back({parts_.operands.left.k, k, lanes});
    Scope scope(parts_.left.loads, std::move(groups), mask, &of_row);
    Value value = b_.broadcast(parts_.left.loads.emit(program_[sum.reduction].args[0], scope), lanes);
    if (mask) value = b_.select(mask, value, identity_of(sum, lanes));
    b_.set(sum.lanes, b_.apply(program_[sum.reduction].op, {b_.get(sum.lanes), value}));
  }
}

/// Threads take adjacent vectors in turn, first those that are kept.
void RowOperand::sum_rows(std::vector<RowSum>& sums, Value thread, Value batch, int lanes) {
  const std::int64_t step = std::int64_t{threads_} * lanes;
  auto terms = parts_.operands.k.value();
  if (terms) *terms /= step;
  const auto of_lanes = [&](const RowSum& sum) {
    const Value value = b_.get(sum.lanes);
    return value.type.lanes > 1 ? b_.reduce(program_[sum.reduction].op, value) : value;
  };
  bool has_totals = false;
  for (RowSum& sum : sums) {
    const ElementwiseInstruction& reduce = program_[sum.reduction];
    sum.lanes = b_.var(identity_of(sum, lanes));
    if (!adds_in_blocks(reduce.op, compute_type(reduce.dtype), terms)) continue;
    sum.total.emplace(b_, reduce.op, reduction_identity(b_, reduce));
    has_totals = true;
  }
  const auto end_of_block = [&] {
    for (RowSum& sum : sums) {
      if (!sum.total) continue;
      sum.total->add(of_lanes(sum));
      b_.set(sum.lanes, identity_of(sum, lanes));
    }
  };
  const auto add_range = [&](Value lo, Value hi, bool is_kept) {
    const auto add = [&](Value k) {
      unmasked_or_masked(b_, k, parts_.k, lanes, parts_.operands.k,
                         [&](Value mask) { add_terms(sums, batch, k, lanes, mask, is_kept); });
    };
    if (has_totals)
      for_blocks(b_, lo, hi, step, add, end_of_block);
    else
      b_.for_loop(lo, hi, step, add);
  };
  add_range(thread * lanes, keeps_first_chunk() ? kernel::min(parts_.k, chunk_) : parts_.k, !kept_.empty());
  if (keeps_first_chunk()) add_range(chunk_ + thread * lanes, parts_.k, false);
  for (RowSum& sum : sums) sum.value = sum.total ? sum.total->get() : of_lanes(sum);
}

void RowOperand::compute(Value thread, Value batch, Value first, Value count, int lanes) {
  compute_vectors(thread, batch, first, count, lanes, !kept_.empty() && is_whole());
}

void RowOperand::compute_kept(Value thread, Value batch, Value count, int lanes) {
  compute_vectors(thread, batch, b_.index(0), count, lanes, true);
}

void RowOperand::compute_vectors(Value thread, Value batch, Value first, Value count, int lanes, bool is_kept) {
  const std::vector<int> loads = is_kept ? std::vector<int>{} : loads_;
  const auto known = is_whole() ? parts_.operands.k.value() : std::nullopt;
  for_vectors(thread, count, known, lanes, loads.size() * static_cast<std::size_t>(rows_),
              [&](const std::vector<Value>& at, Value mask) {
                std::vector<Value> positions;
                for (const Value k : at) positions.push_back(first + k);
                const Loaded loaded = load_rows(loads, all_rows(), batch, positions, lanes, mask);
                for (std::size_t k = 0; k < at.size(); ++k)
                  for (int r = 0; r < rows_; ++r) {
                    const Scope of_row = is_kept
                                             ? kept_scope(batch, r, at[k], lanes, mask)
                                             : loaded_scope(batch, r, loads, loaded[k][static_cast<std::size_t>(r)]);
                    const Value value = parts_.left.operand.load(parts_.left.loads, of_row, batch, b_.index(r),
                                                                 positions[k], LaneAxis::k, lanes, mask);
                    b_.store(elements_, r * chunk_ + at[k], b_.cast(value, elements_.dtype), mask);
                  }
              });
  b_.barrier();
}

Value RowOperand::load(int row, Value at, int lanes, Value mask) const {
  return b_.cast(b_.load(elements_, row * chunk_ + at, lanes, mask), parts_.operands.compute);
}

}  // namespace lathe::gpu
