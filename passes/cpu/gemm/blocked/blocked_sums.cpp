#include "passes/cpu/gemm/blocked/blocked_sums.h"

#include "passes/cpu/gemm/compensated_total.h"
#include "passes/cpu/gemm/pack/gemm_pack.h"
#include "passes/cpu/gemm/register_tile.h"

namespace lathe::cpu {

using kernel::Buffer;
using kernel::Value;
using kernel::Var;

void BlockedSums::allocate(std::int64_t sums) { sums_ = b_.alloc(tile_.compute, sums, kernel::Space::stack, "sums"); }
void BlockedSums::allocate_parts(std::int64_t sums) {
  parts_ = b_.alloc(tile_.compute, sums, kernel::Space::stack, "parts");
}
void BlockedSums::allocate_excess(std::int64_t sums, Value compensates) {
  excess_ = b_.alloc(tile_.compute, sums, kernel::Space::stack, "excess");
  compensates_ = compensates;
}

int BlockedSums::known_tail() const {
  const auto n = b_.constant_value(sizes_.n);
  if (!n) return 0;
  const auto left = static_cast<int>(*n % tile_.n_step());
  return left == 0 ? tile_.nv : (left + tile_.lanes - 1) / tile_.lanes;
}

BlockedSums::Accumulators BlockedSums::zeros(const TilePosition& at, int nv) {
  Accumulators acc;
  for (int i = 0; i < at.rows * nv; ++i)
    acc.push_back(b_.var({tile_.compute, tile_.lanes}, b_.constant(tile_.compute, 0, tile_.lanes)));
  return acc;
}

/// Calls body(accumulator, position in the scratch of sums) for each vector of a tile.
void BlockedSums::each_vector(const Accumulators& acc, const TilePosition& at, int nv,
                              const std::function<void(const Var& sum, Value position)>& body) const {
  for (int i = 0; i < at.rows; ++i)
    for (int v = 0; v < nv; ++v) body(this->at(acc, i, v, nv), at.sums + (i * tile_.n_step() + v * tile_.lanes));
}

void BlockedSums::load_from(Buffer from, const Accumulators& acc, const TilePosition& at, int nv) {
  each_vector(acc, at, nv, [&](const Var& sum, Value position) { b_.set(sum, load_vector(from, position)); });
}

void BlockedSums::store_to(Buffer to, const Accumulators& acc, const TilePosition& at, int nv) {
  each_vector(acc, at, nv,
              [&](const Var& sum, Value position) { b_.store(to, position, b_.get(sum), {}, vector_bytes()); });
}

void BlockedSums::add_to_total(const Accumulators& acc, const TilePosition& at, int nv, Value continues) {
  const auto plain = [&] {
    b_.if_(continues, [&] {
      each_vector(acc, at, nv,
                  [&](const Var& sum, Value position) { b_.set(sum, load_vector(sums_, position) + b_.get(sum)); });
    });
    store(acc, at, nv);
  };
  if (!compensates_) return plain();
  b_.if_(*compensates_, [&] { add_to_compensated_total(acc, at, nv, continues); }, plain);
}

void BlockedSums::add_to_compensated_total(const Accumulators& acc, const TilePosition& at, int nv, Value continues) {
  const Value zero = b_.constant(tile_.compute, 0, tile_.lanes);
  each_vector(acc, at, nv, [&](const Var& sum, Value position) {
    const Var excess = b_.var(zero);
    b_.if_(continues, [&] {
      const CompensatedTotal total =
          add_block({load_vector(sums_, position), load_vector(excess_, position)}, b_.get(sum));
      b_.set(sum, total.sum);
      b_.set(excess, total.excess);
    });
    b_.store(excess_, position, b_.get(excess), {}, vector_bytes());
  });
  store(acc, at, nv);
}

int BlockedSums::vector_bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }

Value BlockedSums::load_vector(Buffer from, Value position) {
  return b_.load(from, position, tile_.lanes, {}, vector_bytes());
}

void BlockedSums::finish_tile(const GemmTask& t, const TilePosition& at, int nv, const Accumulators& acc) {
  const bool exact = b_.constant_value(sizes_.m).has_value();
  for (int i = 0; i < at.rows; ++i) {
    const auto row = [&, i] {
      const RowEpilogue consume = epilogue_(t.batch, at.m + i);
      for (int v = 0; v < nv; ++v) {
        const Value n = at.n + v * tile_.lanes;
        consume(n, tile_.lanes, b_.get(this->at(acc, i, v, nv)), mask_of(n, nv));
      }
    };
    exact ? row() : b_.if_(at.m + i < sizes_.m, row);
  }
}

/// Returns the mask of the results from n on that exist, in a tile of nv vectors; empty: all.
Value BlockedSums::mask_of(Value n, int nv) {
  const bool whole = b_.constant_value(sizes_.n) && nv == tile_.nv && known_tail() != tile_.nv;
  return whole || known_multiple(b_, sizes_.n, tile_.lanes) ? Value{} : b_.tail_mask(sizes_.n - n, tile_.lanes);
}

void BlockedSums::finish_above(const GemmTask& t, const TilePosition& at, Value row, int nv) {
  const int lanes = tile_.lanes;
  const RowEpilogue consume = epilogue_(t.batch, at.m - tile_.mr + row);
  for (int v = 0; v < nv; ++v) {
    const Value n = at.n + v * lanes, sums = load_vector(sums_, at.above + (row * tile_.n_step() + v * lanes));
    consume(n, lanes, sums, mask_of(n, nv));
  }
}

void BlockedSums::finish_rows(const GemmTask& t, Value m, Value base) {
  const int lanes = tile_.lanes, step = tile_.n_step();
  const Value width = t.n1 - t.n0, even = width / step * step;
  b_.for_loop(m, min(m + tile_.mr, t.m1), 1, [&](Value row) {
    const RowEpilogue consume = epilogue_(t.batch, row);
    const Value position = base + (row - m) * step;
    const auto vector = [&](Value column, Value c, Value mask) {
      consume(t.n0 + column + c, lanes, load_vector(sums_, position + column * tile_.mr + c), mask);
    };
    b_.for_loop(0, even, step, [&](Value column) {
      for (int v = 0; v < tile_.nv; ++v) vector(column, b_.index(v * lanes), {});
    });
    if (known_multiple(b_, sizes_.n, step)) return;
    const Value left = width - even;
    b_.for_loop(0, left, lanes, [&](Value c) { vector(even, c, b_.tail_mask(left - c, lanes)); });
  });
}

}  // namespace lathe::cpu
