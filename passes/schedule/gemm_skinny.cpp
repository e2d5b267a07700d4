#include <utility>
#include <vector>

#include "ir/support/error.h"
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
    const Value blocks = b_.ceil_div(sizes_.n, tile_.nc), strips = b_.ceil_div(sizes_.m, tile_.mr);
    b_.parallel_for(0, sizes_.batch * blocks * strips, 1, [&](Value index) {
      const Value strip = index % strips, rest = index / strips;
      const Value m = strip * tile_.mr, n0 = rest % blocks * tile_.nc, batch = rest / blocks;
      sums_ = b_.alloc(tile_.compute, std::int64_t{tile_.mr} * width(), kernel::Space::stack, "sums");
      b_.for_loop(n0, min(n0 + tile_.nc, sizes_.n), tile_.nv, [&](Value n) { dots(batch, m, n, n - n0); });
      finish(batch, m, n0);
    });
  }

 private:
  /// Columns of a row of sums: whole vectors.
  int width() const { return (tile_.nc + tile_.lanes - 1) / tile_.lanes * tile_.lanes; }

  /// mr x nv sums at once. Rows and columns beyond the last repeat it.
  void dots(Value batch, Value m, Value n, Value column) {
    std::vector<Value> rows, columns;
    for (int i = 0; i < tile_.mr; ++i) rows.push_back(inside(m, i, sizes_.m));
    for (int j = 0; j < tile_.nv; ++j) columns.push_back(inside(n, j, sizes_.n));
    std::vector<Var> sums;
    for (int i = 0; i < tile_.mr * tile_.nv; ++i) sums.push_back(b_.var(b_.constant(tile_.compute, 0, tile_.lanes)));
    const auto step = [&](Value k, Value mask) {
      std::vector<Value> left, right;
      for (const Value& row : rows) left.push_back(load(lhs_, batch, row, k, mask));
      for (const Value& col : columns) right.push_back(load(rhs_, batch, col, k, mask));
      for (std::size_t i = 0; i < left.size(); ++i)
        for (std::size_t j = 0; j < right.size(); ++j) {
          const Var sum = sums[i * right.size() + j];
          const Value so_far = b_.get(sum);
          b_.set(sum, is_float(tile_.compute) ? b_.fma(left[i], right[j], so_far) : left[i] * right[j] + so_far);
        }
    };
    const Value even = sizes_.k / tile_.lanes * tile_.lanes;
    b_.for_loop(0, even, tile_.lanes, [&](Value k) { step(k, {}); });
    if (!b_.constant_value(sizes_.k) || *b_.constant_value(sizes_.k) % tile_.lanes != 0)
      b_.if_(even < sizes_.k, [&] { step(even, b_.tail_mask(sizes_.k - even, tile_.lanes)); });
    for (int i = 0; i < tile_.mr; ++i)
      for (int j = 0; j < tile_.nv; ++j)
        b_.store(sums_, column + (i * width() + j),
                 b_.reduce(ScalarOp::add, b_.get(sums[static_cast<std::size_t>(i * tile_.nv + j)])));
  }

  Value inside(Value first, int offset, Value size) { return offset == 0 ? first : min(first + offset, size - 1); }

  Value load(const GemmOperand& operand, Value batch, Value row, Value k, Value mask) {
    const Value value = operand.load(batch, row, k, LaneAxis::k, tile_.lanes, mask);
    return mask ? b_.select(mask, value, b_.constant(tile_.compute, 0, tile_.lanes)) : value;
  }

  void finish(Value batch, Value m, Value n0) {
    const Value columns = min(sizes_.n - n0, tile_.nc), even = columns / tile_.lanes * tile_.lanes;
    b_.for_loop(m, min(m + tile_.mr, sizes_.m), 1, [&](Value row) {
      const RowEpilogue consume = epilogue_(batch, row);
      const Value base = (row - m) * width();
      b_.for_loop(0, even, tile_.lanes,
                  [&](Value c) { consume(n0 + c, tile_.lanes, b_.load(sums_, base + c, tile_.lanes), {}); });
      b_.if_(even < columns, [&] {
        const Value mask = b_.tail_mask(columns - even, tile_.lanes);
        consume(n0 + even, tile_.lanes, b_.load(sums_, base + even, tile_.lanes, mask), mask);
      });
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
