#include "passes/gpu/gemm/gemv/row_operand.h"

#include <algorithm>

#include "passes/lowering/elementwise/row_loops.h"

namespace lathe::gpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;

namespace {

constexpr std::int64_t chunk_bytes = 12 << 10;  // two blocks of 256 threads leave room for their sums in 48 KiB
constexpr std::int64_t chunk_unit = 64;         // elements; whole vectors
constexpr int most_sums = 32;                   // registers of a thread
constexpr int most_recomputed = 2;              // operations that each thread repeats for the elements that it loads
constexpr std::int64_t most_loaded = 128;       // elements of a row that each thread loads itself

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
  if (const auto length = parts.operands.k.value())
    chunk_ = std::min(chunk_, (std::max<std::int64_t>(*length, 1) + chunk_unit - 1) / chunk_unit * chunk_unit);
  is_computed_ = is_computed_ || (is_whole() && *parts.operands.k.value() > most_loaded);
  kept_ = loads_of_reductions();
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
  for (const int i : kept_) bytes += rows_ * chunk_ * size_of(i);
  return bytes;
}

/// Returns the loads along the row that reductions need, if there is room for their elements. A thread then loads an
/// element once, and not once per reduction and once more for the result: in a kernel of phases such loads may come
/// from L2 (KernelPhase::awaited).
std::vector<int> RowOperand::loads_of_reductions() const {
  if (!is_computed_ || !is_whole()) return {};
  std::uint64_t along = 0;
  for (const int d : parts_.operands.left.k) along |= std::uint64_t{1} << d;
  std::vector<bool> needed(static_cast<std::size_t>(program_.size()), false);
  std::vector<int> found;
  std::int64_t bytes = 0;
  for (int i = program_.size() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_reduction = program_[i].kind == Kind::reduce;
    if (is_reduction || needed[at])
      for (const int arg : program_[i].args) needed[static_cast<std::size_t>(arg)] = true;
    if (!needed[at] || program_[i].kind != Kind::load || (program_.depends[at] & along) == 0) continue;
    found.push_back(i);
    bytes += rows_ * chunk_ * static_cast<std::int64_t>(size_in_bytes(program_[i].dtype));
  }
  return bytes <= chunk_bytes ? found : std::vector<int>{};
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
  for (const int i : kept_) loaded_[i] = b_.alloc(program_[i].dtype, rows_ * chunk_, kernel::Space::shared, "loaded");
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

/// Loads the elements that a thread needs, as in sum_rows and compute, so that it reads what it stored.
void RowOperand::keep_loads(Value thread, Value batch, int lanes) {
  if (kept_.empty()) return;
  b_.for_loop(thread * lanes, parts_.k, std::int64_t{threads_} * lanes, [&](Value k) {
    unmasked_or_masked(b_, k, parts_.k, lanes, parts_.operands.k, [&](Value mask) {
      for (const int i : kept_)
        for (int r = 0; r < rows_; ++r) {
          auto groups = at(batch, r);
          groups.push_back({parts_.operands.left.k, k, lanes});
          Scope scope(parts_.left.loads, std::move(groups), mask, &scopes_[static_cast<std::size_t>(r)]);
          const Value value = b_.broadcast(parts_.left.loads.emit(i, scope), lanes);
          b_.store(loaded_.at(i), r * chunk_ + k, b_.cast(value, program_[i].dtype), mask);
        }
    });
  });
}

/// Binds the kept elements of a row from column `at` on.
void RowOperand::bind_kept(int row, Value at, int lanes, Value mask) {
  for (const int i : kept_) {
    const Value value = b_.load(loaded_.at(i), row * chunk_ + at, lanes, mask);
    scopes_[static_cast<std::size_t>(row)].bind(i, b_.cast(value, compute_type(program_[i].dtype)));
  }
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

/// Threads take adjacent vectors in turn.
void RowOperand::sum_rows(std::vector<RowSum>& sums, Value thread, Value batch, int lanes) {
  const std::int64_t step = std::int64_t{threads_} * lanes;
  auto terms = parts_.operands.k.value();
  if (terms) *terms /= step;
  const auto identity = [&](const RowSum& sum) {
    return b_.broadcast(reduction_identity(b_, program_[sum.reduction]), lanes);
  };
  const auto of_lanes = [&](const RowSum& sum) {
    const Value value = b_.get(sum.lanes);
    return value.type.lanes > 1 ? b_.reduce(program_[sum.reduction].op, value) : value;
  };
  bool has_totals = false;
  for (RowSum& sum : sums) {
    const ElementwiseInstruction& reduce = program_[sum.reduction];
    sum.lanes = b_.var(identity(sum));
    if (!adds_in_blocks(reduce.op, compute_type(reduce.dtype), terms)) continue;
    sum.total.emplace(b_, reduce.op, reduction_identity(b_, reduce));
    has_totals = true;
  }
  const auto add = [&](Value k) {
    unmasked_or_masked(b_, k, parts_.k, lanes, parts_.operands.k, [&](Value mask) {
      for (const RowSum& sum : sums) {
        bind_kept(sum.row, k, lanes, mask);
        auto groups = at(batch, sum.row);
        groups.push_back({parts_.operands.left.k, k, lanes});
        Scope scope(parts_.left.loads, std::move(groups), mask, &scopes_[static_cast<std::size_t>(sum.row)]);
        Value value = b_.broadcast(parts_.left.loads.emit(program_[sum.reduction].args[0], scope), lanes);
        if (mask) value = b_.select(mask, value, identity(sum));
        b_.set(sum.lanes, b_.apply(program_[sum.reduction].op, {b_.get(sum.lanes), value}));
      }
    });
  };
  const auto end_of_block = [&] {
    for (RowSum& sum : sums) {
      if (!sum.total) continue;
      sum.total->add(of_lanes(sum));
      b_.set(sum.lanes, identity(sum));
    }
  };
  if (has_totals)
    for_blocks(b_, thread * lanes, parts_.k, step, add, end_of_block);
  else
    b_.for_loop(thread * lanes, parts_.k, step, add);
  for (RowSum& sum : sums) sum.value = sum.total ? sum.total->get() : of_lanes(sum);
}

void RowOperand::compute(Value thread, Value batch, Value first, Value count, int lanes) {
  const DType dtype = elements_.dtype;
  b_.for_loop(thread * lanes, count, std::int64_t{threads_} * lanes, [&](Value k) {
    unmasked_or_masked(b_, k, count, lanes, parts_.operands.k, [&](Value mask) {
      for (int r = 0; r < rows_; ++r) {
        bind_kept(r, k, lanes, mask);
        const Value value = parts_.left.operand.load(parts_.left.loads, scopes_[static_cast<std::size_t>(r)], batch,
                                                     b_.index(r), first + k, LaneAxis::k, lanes, mask);
        b_.store(elements_, r * chunk_ + k, b_.cast(value, dtype), mask);
      }
    });
  });
  b_.barrier();
}

Value RowOperand::load(int row, Value at, int lanes, Value mask) const {
  return b_.cast(b_.load(elements_, row * chunk_ + at, lanes, mask), parts_.operands.compute);
}

}  // namespace lathe::gpu
