#include <numbers>

#include "ir/ops/composites/composite.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

Value literal(GraphBuilder& b, const Shape& shape, NumberList values, DType dtype) {
  return b.add(ops::constant, {}, {{"dtype", dtype}, {"shape", shape}, {"values", std::move(values)}});
}

Value constant(GraphBuilder& b, const Number& value, DType dtype) { return literal(b, {}, {value}, dtype); }

Value full(GraphBuilder& b, const Shape& shape, const Number& value, DType dtype) {
  return expand(constant(b, value, dtype), shape);
}

Value iota(GraphBuilder& b, const Shape& shape, int dim, DType dtype) {
  const std::int64_t at = dim < 0 && dim >= -shape.rank() ? dim + shape.rank() : dim;
  return b.add(ops::iota, {}, {{"shape", shape}, {"dim", at}, {"dtype", dtype}});
}

Value random_uniform(const Value& state, const Shape& shape, DType dtype, std::int64_t stream) {
  return state.builder().add(ops::random_uniform, {state}, {{"shape", shape}, {"dtype", dtype}, {"stream", stream}});
}

Value random_uniform(const Value& state, const Shape& shape, DType dtype, double low, double high) {
  // 16-bit floats are too coarse to scale.
  const Value unit = random_uniform(state, shape, compute_dtype(dtype), state.builder().next_stream());
  return cast(add(mul(unit, high - low), low), dtype);
}

/// Box and Muller 1958: sqrt(-2 log(1 - u)) cos(2 pi v) for uniform u, v in [0, 1). 16-bit floats are too coarse for
/// the tails, so the result is rounded from f32.
Value random_normal(const Value& state, const Shape& shape, DType dtype) {
  GraphBuilder& b = state.builder();
  const DType compute = dtype == f64 ? f64 : f32;
  const Value u = random_uniform(state, shape, compute, b.next_stream());
  const Value v = random_uniform(state, shape, compute, b.next_stream());
  const Value radius = sqrt(mul(log(sub(1.0, u)), -2.0));
  return cast(mul(radius, cos(mul(v, 2 * std::numbers::pi))), dtype);
}

}  // namespace lathe::ir
