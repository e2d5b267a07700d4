#include "ir/ops/functional/functional_composites.h"
#include "tests/fuzz/graph_maker.h"

namespace lathe::fuzz {

using namespace ir;

GraphMaker::Maybe GraphMaker::unary() {
  const Value a = pick_float();
  switch (below(21)) {
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
  switch (below(10)) {
    case 0: return add(*a, *b);
    case 1: return sub(*a, *b);
    case 2: return mul(*a, *b);
    case 3: return div(*a, *b);
    case 4: return rem(*a, *b);
    case 5: return maximum(*a, *b);
    case 6: return minimum(*a, neg(*b));
    case 7: return abs(sub(*a, 2.0));
    case 8: return sign(*a);
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

/// Between any two dtypes, at times by way of bytes; to integers, and roundings, only of what every way of computing
/// gives the same.
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

}  // namespace lathe::fuzz
