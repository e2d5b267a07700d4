#include <utility>
#include <vector>

#include "ir/support/error.h"
#include "passes/schedule/gemm_pack.h"
#include "passes/schedule/gemm_strategies.h"

namespace lathe::schedule {

using kernel::Buffer;
using kernel::Builder;
using kernel::Value;
using kernel::Var;

namespace {

class SkinnyDot {
 public:
  SkinnyDot(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs, const GemmOperand& rhs,
            const Epilogue& epilogue)
      : b_(b), tile_(plan.tile), sizes_(sizes), lhs_(lhs), rhs_(rhs), epilogue_(epilogue) {}

  void emit() {
    LATHE_ASSERT(tile_.mc % tile_.mr == 0 && tile_.nc % tile_.nv == 0);
    const Value column_blocks = b_.ceil_div(sizes_.n, tile_.nc), row_blocks = b_.ceil_div(sizes_.m, tile_.mc);
    const Value passes = max(b_.ceil_div(sizes_.k, tile_.kc), 1);
    b_.parallel_for(0, sizes_.batch * column_blocks * row_blocks, 1, [&](Value index) {
      const Value m0 = index % row_blocks * tile_.mc, rest = index / row_blocks;
      const Value n0 = rest % column_blocks * tile_.nc, batch = rest / column_blocks;
      const Value m1 = min(m0 + tile_.mc, sizes_.m), n1 = min(n0 + tile_.nc, sizes_.n);
      sums_ = b_.alloc(tile_.compute, std::int64_t{tile_.mc} * tile_.nc * tile_.lanes, kernel::Space::stack, "sums");
      b_.for_loop(0, passes, 1, [&](Value pass) {
        b_.for_loop(m0, m1, tile_.mr, [&](Value m) {
          b_.for_loop(n0, n1, tile_.nv,
                      [&](Value n) { dots({batch, m, n, place(m - m0, n - n0), pass * tile_.kc}); });
        });
      });
      finish({batch, m0, m1, n0, n1});
    });
  }

 private:
  /// The sums of rows m .. x columns n .., over k0 .. k0 + kc.
  struct Dots {
    Value batch, m, n, sums, k0;
  };
  /// Finished sums.
  struct Block {
    Value batch, m0, m1, n0, n1;
  };

  /// Where the lanes of a sum are kept, between blocks of k and until they are added up.
  Value place(Value row, Value column) const { return (row * tile_.nc + column) * tile_.lanes; }

  int vector_bytes() const { return tile_.lanes * static_cast<int>(size_in_bytes(tile_.compute)); }

  /// mr x nv sums at once over one block of k. Rows and columns beyond the last repeat it.
  void dots(const Dots& at) {
    std::vector<Value> rows, columns;
    for (int i = 0; i < tile_.mr; ++i) rows.push_back(inside(at.m, i, sizes_.m));
    for (int j = 0; j < tile_.nv; ++j) columns.push_back(inside(at.n, j, sizes_.n));
    std::vector<Var> sums;
    for (int i = 0; i < tile_.mr * tile_.nv; ++i) sums.push_back(b_.var(b_.constant(tile_.compute, 0, tile_.lanes)));
    const auto each = [&](const auto& body) {
      for (int i = 0; i < tile_.mr; ++i)
        for (int j = 0; j < tile_.nv; ++j)
          body(sums[static_cast<std::size_t>(i * tile_.nv + j)], at.sums + (i * tile_.nc + j) * tile_.lanes);
    };
    b_.if_(at.k0 > 0, [&] {
      each([&](Var sum, Value kept) { b_.set(sum, b_.load(sums_, kept, tile_.lanes, {}, vector_bytes())); });
    });
    const auto step = [&](Value k, Value mask) {
      std::vector<Value> left, right;
      for (const Value& row : rows) left.push_back(load(lhs_, at.batch, row, k, mask));
      for (const Value& col : columns) right.push_back(load(rhs_, at.batch, col, k, mask));
      for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t j = 0; j < right.size(); ++j) {
          const Var sum = sums[i * right.size() + j];
          const Value so_far = b_.get(sum);
          b_.set(sum, is_float(tile_.compute) ? b_.fma(left[i], right[j], so_far) : left[i] * right[j] + so_far);
        }
    };
    const Value k1 = min(at.k0 + tile_.kc, sizes_.k);
    const Value even = at.k0 + (k1 - at.k0) / tile_.lanes * tile_.lanes;
    b_.for_loop(at.k0, even, tile_.lanes, [&](Value k) { step(k, {}); });
    if (!b_.constant_value(sizes_.k) || *b_.constant_value(sizes_.k) % tile_.lanes != 0)
      b_.if_(even < k1, [&] { step(even, b_.tail_mask(k1 - even, tile_.lanes)); });
    each([&](Var sum, Value kept) { b_.store(sums_, kept, b_.get(sum), {}, vector_bytes()); });
  }

  Value inside(Value first, int offset, Value size) { return offset == 0 ? first : min(first + offset, size - 1); }

  Value load(const GemmOperand& operand, Value batch, Value row, Value k, Value mask) {
    const Value value = operand.load(batch, row, k, LaneAxis::k, tile_.lanes, mask);
    return mask ? b_.select(mask, value, b_.constant(tile_.compute, 0, tile_.lanes)) : value;
  }

  /// Adds up the lanes of as many columns at once as a vector has, and hands them to the epilogue.
  void finish(const Block& block) {
    const Value columns = block.n1 - block.n0, even = columns / tile_.lanes * tile_.lanes;
    b_.for_loop(block.m0, block.m1, 1, [&](Value row) {
      const RowEpilogue consume = epilogue_(block.batch, row);
      const auto results = [&](Value first, Value mask) {
        std::vector<Value> sums;
        for (int c = 0; c < tile_.lanes; ++c) {
          const Value column = mask ? min(first + c, columns - 1) : first + c;
          sums.push_back(b_.load(sums_, place(row - block.m0, column), tile_.lanes, {}, vector_bytes()));
        }
        consume(block.n0 + first, tile_.lanes, sums_of_lanes(b_, std::move(sums)), mask);
      };
      b_.for_loop(0, even, tile_.lanes, [&](Value c) { results(c, {}); });
      if (known_multiple(b_, sizes_.n, tile_.lanes) && tile_.nc % tile_.lanes == 0) return;
      b_.if_(even < columns, [&] { results(even, b_.tail_mask(columns - even, tile_.lanes)); });
    });
  }

  Builder& b_;
  const GemmTile& tile_;
  const GemmSizes& sizes_;
  const GemmOperand &lhs_, &rhs_;
  const Epilogue& epilogue_;
  Buffer sums_;
};

}  // namespace

void emit_skinny_dot(Builder& b, const GemmPlan& plan, const GemmSizes& sizes, const GemmOperand& lhs,
                     const GemmOperand& rhs, const Epilogue& epilogue) {
  SkinnyDot(b, plan, sizes, lhs, rhs, epilogue).emit();
}

}  // namespace lathe::schedule
