#include <algorithm>

#include "ir/ops/functional/functional_composites.h"
#include "tests/fuzz/graph_maker.h"

namespace lathe::fuzz {

using namespace ir;

GraphMaker::Maybe GraphMaker::unary() {
  const Value a = pick_float();
  switch (below(24)) {
    case 0: return neg(a);
    case 1: return abs(a);
    case 2: return exp(tanh(a));
    case 3: return log(add(abs(a), 0.5));
    case 4: return sqrt(add(square(tanh(a)), 0.25));
    case 5: return rsqrt(add(square(tanh(a)), 0.25));
    case 6: return sin(tanh(a));
    case 7: return cos(a.dtype() == f64 ? a : tanh(a));
    case 8: return tanh(a);
    case 9: return erf(a);
    case 10: return sigmoid(a);
    case 11: return gelu(a, one_in(2));
    case 12: return silu(a);
    case 13: return relu(a);
    case 14: return mul(a, any_of(std::vector<double>{1.0, -1.0, 0.0, 0.5}));
    case 15: return add(a, any_of(std::vector<double>{0.0, -0.0, 1.5}));
    case 16: return neg(neg(a));
    case 17: return pow(tanh(a), static_cast<double>(below(4)));
    case 18: return clamp(a, -0.75, 1.25);
    case 19: return softplus(a);
    case 20: return log1p(abs(tanh(a)));
    case 21: return expm1(tanh(a));
    case 22: return straight_through(a, tanh(a));
    default: return one_in(2) ? stop_gradient(a) : reciprocal(add(square(tanh(a)), 0.5));
  }
}

GraphMaker::Maybe GraphMaker::binary() {
  const Value a = pick_float();
  const Maybe b = pick_like(a);
  if (!b) return std::nullopt;
  switch (below(9)) {
    case 0: return add(a, *b);
    case 1: return sub(a, neg(*b));
    case 2: return sub(*b, a);
    case 3: return mul(a, tanh(*b));
    case 4: return maximum(a, *b);
    case 5: return minimum(a, *b);
    case 6: return div(a, add(square(tanh(*b)), 0.5));
    case 7: return pow(add(square(tanh(a)), 0.25), tanh(*b));
    default: {
      const Maybe c = pick_steady(&a);
      return c && broadcasts(c->shape(), b->shape()) ? Maybe(where(gt(*c, 0.25), a, *b)) : std::nullopt;
    }
  }
}

GraphMaker::Maybe GraphMaker::integer() {
  const Maybe a = pick_kind(is_integer);
  if (!a || a->dtype() == boolean) return std::nullopt;
  const Maybe b = pick_like(*a);
  if (!b) return std::nullopt;
  switch (below(14)) {
    case 0: return add(*a, *b);
    case 1: return sub(*a, *b);
    case 2: return mul(*a, *b);
    case 3: return div(*a, *b);
    case 4: return rem(*a, *b);
    case 5: return maximum(*a, *b);
    case 6: return minimum(*a, neg(*b));
    case 7: return abs(sub(*a, 2.0));
    case 8: return sign(*a);
    case 9: return one_in(2) ? bitwise_and(*a, *b) : bitwise_not(*a);
    case 10: return bitwise_or(*a, *b);
    case 11: return bitwise_xor(*a, *b);
    case 12: return one_in(2) ? shift_left(*a, *b) : one_in(2) ? shift_right(*a, *b) : shift_right_logical(*a, *b);
    default: return add(mul(*a, 3.0), -1.0);
  }
}

GraphMaker::Maybe GraphMaker::truth() {
  if (one_in(3)) {
    const Maybe a = pick([](const Item& item) { return item.value.dtype() == boolean; });
    const Maybe b = a ? pick_like(*a) : std::nullopt;
    if (!b) return std::nullopt;
    switch (below(4)) {
      case 0: return logical_and(*a, *b);
      case 1: return logical_or(*a, *b);
      case 2: return logical_not(*a);
      default: return eq(*a, *b);
    }
  }
  const Maybe a = one_in(3) ? pick_kind(is_integer) : pick_steady(nullptr);
  if (!a || a->dtype() == boolean) return std::nullopt;
  const Maybe b = pick([&](const Item& item) {
    return item.value.dtype() == a->dtype() && (item.exact || a->dtype() == f64) &&
           broadcasts(item.value.shape(), a->shape());
  });
  if (!b || (real_ != f64 && !exact(*b))) return std::nullopt;
  switch (below(6)) {
    case 0: return lt(*a, *b);
    case 1: return le(*a, is_float(a->dtype()) ? 0.5 : 1.0);
    case 2: return ne(*a, *b);
    case 3: return ge(*a, *b);
    case 4: return logical_not(lt(*a, *b));
    default: return eq(*a, 1.0);
  }
}

ir::Value GraphMaker::to_integer(const ir::Value& a) {
  const ir::Value held = one_in(3) ? cast(a, one_in(2) ? i8 : u8) : a;
  return cast(held, any_of(std::vector<DType>{i64, i32, boolean}));
}

/// Casts between any two dtypes, sometimes through bytes. Casts to integers, and rounding, only apply to exact
/// values.
GraphMaker::Maybe GraphMaker::conversion() {
  switch (below(7)) {
    case 0:
    case 1: return cast(pick_float(), other_float());
    case 2: {
      const Maybe a = pick([](const Item& item) { return !(is_float(item.value.dtype())); });
      return a ? Maybe(cast(*a, real_)) : std::nullopt;
    }
    case 3: {
      const Maybe a = pick([&](const Item& i) { return is_float(i.value.dtype()) && i.value.dtype() != real_; });
      return a ? Maybe(cast(*a, real_)) : std::nullopt;
    }
    case 4: {
      const Maybe a = pick_steady(nullptr);
      return a ? Maybe(to_integer(*a)) : std::nullopt;
    }
    case 5: {
      const Maybe a = pick_steady(nullptr);
      if (!a) return std::nullopt;
      return one_in(3) ? floor(*a) : one_in(2) ? round(*a) : sign(*a);
    }
    default: {
      const Maybe a = pick_kind(is_integer);
      return a ? Maybe(to_integer(*a)) : std::nullopt;
    }
  }
}

GraphMaker::Maybe GraphMaker::source() {
  const Shape shape = one_in(2) ? pick_float().shape() : Shape{any_size(), any_size()};
  switch (below(6)) {
    case 0: return shape.rank() > 0 ? Maybe(iota(builder_, shape, below(shape.rank()), i64)) : std::nullopt;
    case 1:
      return shape.rank() > 0 ? Maybe(mul(iota(builder_, shape, below(shape.rank()), real_), 0.25)) : std::nullopt;
    case 2: return full(builder_, shape, any_of(std::vector<double>{0.0, 1.0, -0.5}), real_);
    case 3: return literal(builder_, {4}, {0.5, -1.0, 0.0, 2.0}, real_);
    case 4: return div(constant(builder_, 1.0, real_), add(dim_value(builder_, any_size(), real_), 1.0));
    default:
      return random_uniform(*random_state_, shape, real_ == f64 || real_ == f32 ? real_ : f32,
                            builder_.next_stream());
  }
}

/// A constant that 16-bit floats round, compared with itself after a selection: max(min(a, 0), c) is c.
GraphMaker::Maybe GraphMaker::rounded_constant() {
  const Value a = pick_float();
  const double c = any_of(std::vector<double>{0.1, 0.3, 1.0 / 3, 1000.1});
  const Value chosen = maximum(minimum(a, 0.0), c);
  switch (below(7)) {
    case 0: return eq(chosen, c);
    case 1: return lt(chosen, c);
    case 2: return le(chosen, c);
    case 3: return sub(chosen, c);
    case 4: return sub(masked_fill(a, eq(chosen, c), c), c);
    case 5: return eq(where(le(chosen, c), c, a), chosen);
    default: return eq(clamp(minimum(a, 0.0), c, 2000), c);
  }
}

/// Integers close to the limits of their dtype, and above 2^53, in attributes; the result is small again.
GraphMaker::Maybe GraphMaker::integer_extreme() {
  const Maybe a = pick_kind(is_integer);
  if (!a) return std::nullopt;
  const auto [lowest, highest] = integer_limits(a->dtype());
  std::vector<std::int64_t> edges = {lowest, lowest + 1, highest, highest - 1};
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  if (a->dtype() == i64) edges.insert(edges.end(), {odd, -odd, odd + 2, (std::int64_t{1} << 62) + 1});
  const std::int64_t edge = any_of(edges);
  const Value far = full(builder_, {}, edge, a->dtype());
  switch (below(10)) {
    case 0: return rem(add(*a, edge), number_like(*a, 1009));
    case 1: return rem(sub(*a, edge), number_like(*a, 1009));
    case 2: return rem(mul(*a, edge), number_like(*a, 1009));
    case 3: return div(mul(*a, edge), number_like(*a, std::int64_t{1} << (a->dtype() == i64 ? 52 : 20)));
    case 4: return eq(maximum(*a, edge), edge);
    case 5: return lt(minimum(*a, edge), edge);
    case 6: return rem(masked_fill(*a, gt(*a, 1), edge), number_like(*a, 1009));
    case 7: return rem(clamp(*a, std::min(edge, highest - 1), highest), number_like(*a, 1009));
    case 8: return rem(where(gt(*a, 1), *a, edge), number_like(*a, 1009));
    default: return div(far, add(abs(*a), 1));
  }
}

/// Casts of numbers close to a tie of a 16-bit float, which f32 would round to the tie.
GraphMaker::Maybe GraphMaker::rounded_once() {
  if (one_in(2)) {
    const Maybe a = pick([](const Item& item) { return item.value.dtype() == i64; });
    if (!a) return std::nullopt;
    const std::int64_t near_tie = (std::int64_t{1} << 60) + (std::int64_t{1} << (one_in(2) ? 52 : 36)) + 1;
    const Value whole = add(rem(*a, number_like(*a, 2)), any_of(std::vector{near_tie, -near_tie}));
    return cast(mul(cast(whole, scaled_ || one_in(2) ? f32 : bf16), 0x1p-60), real_);
  }
  const Maybe a = pick_steady(nullptr);
  if (!a) return std::nullopt;
  const DType narrow = scaled_ ? f32 : one_in(2) ? bf16 : f16;
  const double near_tie = narrow == f16 ? 1.0004882812509095 : 1.0039062500009095;
  const Value above = full(builder_, {}, near_tie, f64), below = full(builder_, {}, -near_tie, f64);
  return cast(cast(where(gt(*a, 0.0), above, below), narrow), real_);
}

}  // namespace lathe::fuzz
