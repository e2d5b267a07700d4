#include <limits>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir::ops {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <unsigned kinds>
TensorType reduce_infer(const InferContext& ctx) {
  rules::require_kind(ctx, 0, kinds);
  const TensorType& type = ctx.operand(0);
  const auto axes = rules::require_axes(ctx, ctx.attr<std::vector<std::int64_t>>("dims"), type.rank());
  return TensorType::contiguous(type.dtype, rules::reduced_shape(type.shape, axes, ctx.attr<bool>("keepdim")));
}

/// Restores the dims of a reduced value as size 1, so that it broadcasts against the operand.
Value with_dims(const GradientContext& g, const Value& reduced) {
  if (g.node.attrs.get<bool>("keepdim")) return reduced;
  Value result = reduced;
  for (const int d : rules::normalize_axes(g.node.attrs.get<std::vector<std::int64_t>>("dims"), g.operand(0).rank()))
    result = ir::unsqueeze(result, d);
  return result;
}

void sum_gradient(const GradientContext& g) { g.set(0, ir::expand(with_dims(g, g.grad), g.operand(0).shape())); }

/// Returns a dtype that counts to `most` exactly: the float if possible, which needs no conversion.
DType counting_dtype(const Dim& most, DType compute) {
  const auto known = most.value();
  return compute == f64 || (known && *known <= 1 << std::numeric_limits<float>::digits) ? compute : i64;
}

/// Equal extremes share the gradient, as in torch.amax and amin. 16-bit floats only count to 256 or 2048.
void extremum_gradient(const GradientContext& g) {
  const Value& a = g.operand(0);
  const auto& dims = g.node.attrs.get<std::vector<std::int64_t>>("dims");
  const DType compute = a.dtype() == bf16 || a.dtype() == f16 ? f32 : a.dtype();
  Dim most(1);
  for (const int d : rules::normalize_axes(dims, a.rank())) most = most * a.shape()[d].unnamed();
  const Value ties = ir::eq(a, with_dims(g, g.result));
  const Value ones = ir::cast(ties, counting_dtype(most, compute));
  const Value count = g.builder.add(ops::sum, {ones}, {{"dims", dims}, {"keepdim", true}});
  const Value share = ir::div(ir::cast(with_dims(g, g.grad), compute), ir::cast(count, compute));
  g.set(0, ir::where(ties, ir::cast(share, a.dtype()), 0.0));
}

Value ones(const Value& like, const Shape& shape) { return ir::full(like.builder(), shape, 1.0, like.dtype()); }

/// Returns, for each element, the product of the other ones along a dim of known size. Pairs are multiplied until one
/// product is left; then each product passes that of all others on to its pair, times the pair's other half. O(n)
/// multiplications, no division: any elements may be 0, in the derivatives of all orders.
Value known_others(const Value& a, int d, std::int64_t size) {
  struct Level {
    Value low, high;
    std::int64_t half, size;
  };
  std::vector<Level> levels;
  Value products = a;
  for (std::int64_t n = size; n > 1; n = levels.back().half + n % 2) {
    const std::int64_t half = n / 2;
    levels.push_back({ir::slice(products, d, 0, half), ir::slice(products, d, half, 2 * half), half, n});
    const Value pairs = ir::mul(levels.back().low, levels.back().high);
    const Value parts[] = {pairs, ir::slice(products, d, 2 * half, n)};
    products = n % 2 == 0 ? pairs : ir::concat(parts, d);
  }
  Value others = ones(a, products.shape());
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const Value pairs = ir::slice(others, d, 0, level->half);
    std::vector<Value> parts = {ir::mul(pairs, level->high), ir::mul(pairs, level->low)};
    if (level->size % 2 == 1) parts.push_back(ir::slice(others, d, level->half, level->half + 1));
    others = ir::concat(parts, d);
  }
  return others;
}

/// The same along a dim of any size n, by n products of n factors.
Value counted_others(const Value& a, int d) {
  const Dim& size = a.shape()[d];
  std::vector<Dim> factors(a.shape().begin(), a.shape().end()), square = {size, size};
  factors.insert(factors.begin() + d, size);
  square.resize(factors.size() - static_cast<std::size_t>(d), Dim(1));
  const Value own =
      ir::eq(ir::iota(a.builder(), Shape(square), 0, i64), ir::iota(a.builder(), Shape(square), 1, i64));
  return ir::prod(ir::where(own, 1.0, ir::expand(ir::unsqueeze(a, d), Shape(factors))), {d + 1});
}

Value others_along(const Value& a, int d) {
  const auto size = a.shape()[d].value();
  return size ? known_others(a, d, *size) : counted_others(a, d);
}

/// Multiplies the gradient by the product of all other elements, dim by dim: those of the same row, then the products
/// of the other rows.
void prod_gradient(const GradientContext& g) {
  const DType dtype = g.operand(0).dtype();
  const DType compute = dtype == bf16 || dtype == f16 ? f32 : dtype;
  Value rest = ir::cast(g.operand(0), compute), gradient = ir::cast(with_dims(g, g.grad), compute);
  for (const int d :
       rules::normalize_axes(g.node.attrs.get<std::vector<std::int64_t>>("dims"), g.operand(0).rank())) {
    gradient = ir::mul(gradient, others_along(rest, d));
    rest = g.builder.add(ops::prod, {rest}, {{"dims", std::vector<std::int64_t>{d}}, {"keepdim", true}});
  }
  g.set(0, ir::cast(gradient, dtype));
}

std::vector<Sample> reduce_samples(const std::vector<DType>& dtypes) {
  using Ints = std::vector<std::int64_t>;
  const auto sample = [](Ints sizes, Ints dims, bool keepdim, DType dtype) {
    return Sample{.operands = {{std::move(sizes), dtype}},
                  .attrs = {{"dims", std::move(dims)}, {"keepdim", keepdim}}};
  };
  std::vector<Sample> samples = {
      sample({2, 3}, {1}, false, f64),       sample({2, 3}, {0}, true, f64), sample({2, 3}, {0, 1}, false, f64),
      sample({2, 3, 4}, {-1, 0}, true, f64), sample({3}, {}, false, f64),    sample({1, 3}, {0}, false, f64),
      sample({0, 3}, {1}, false, f64),       sample({}, {}, false, f64),     sample({2, 1, 2}, {1}, true, f64),
  };
  for (const DType dtype : dtypes) samples.push_back(sample({2, 3}, {1}, false, dtype));
  return samples;
}

constexpr AttrSpec attrs[] = {
    {"dims", AttrKind::integers, true, {}, "the dims to reduce; [] reduces none"},
    {"keepdim", AttrKind::boolean, false, false, "keep the reduced dims with size 1"},
};
constexpr std::string_view reduction_labels[] = {"dtype_kind", "dim_range", "dim_repeat"};

}  // namespace

constinit const Op sum = {
    .name = "sum",
    .doc = "the sum over dims; 0 over no elements",
    .arity = Arity{1, 1},
    .attrs = attrs,
    .labels = reduction_labels,
    .infer = reduce_infer<rules::numbers>,
    .meaning = Reduce{ScalarOp::add, 0},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(sum_gradient),
    .samples =
        [] {
          auto samples = reduce_samples({i64, i32, c128});
          samples.push_back({.operands = {{{3, 0}}}, .attrs = {{"dims", std::vector<std::int64_t>{1}}}});
          return samples;
        },
};

constinit const Op prod = {
    .name = "prod",
    .doc = "the product over dims; 1 over no elements",
    .arity = Arity{1, 1},
    .attrs = attrs,
    .labels = reduction_labels,
    .infer = reduce_infer<rules::reals>,
    .meaning = Reduce{ScalarOp::mul, 1},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(prod_gradient),
    .samples =
        [] {
          auto samples = reduce_samples({i64, i32});
          samples.push_back({.operands = {{{3, 0}}}, .attrs = {{"dims", std::vector<std::int64_t>{1}}}});
          samples.push_back({.operands = {{{5, 2}}}, .attrs = {{"dims", std::vector<std::int64_t>{0}}}});
          for (Sample& sample : samples)  // the tests' loss is y + y^2 / 2: near -1, its gradient amplifies rounding
            if (is_float(sample.operands[0].dtype)) sample.operands[0].low = 0.5, sample.operands[0].high = 1.5;
          return samples;
        },
};

constinit const Op max = {
    .name = "max",
    .doc = "the maximum over dims; -inf (for integers the lowest value) over no elements; NaN if any element is NaN",
    .arity = Arity{1, 1},
    .attrs = attrs,
    .labels = reduction_labels,
    .infer = reduce_infer<rules::reals>,
    .meaning = Reduce{ScalarOp::max, -infinity},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(extremum_gradient),
    .samples = [] { return reduce_samples({i64, i32}); },
};

constinit const Op min = {
    .name = "min",
    .doc = "the minimum over dims; inf (for integers the highest value) over no elements; NaN if any element is NaN",
    .arity = Arity{1, 1},
    .attrs = attrs,
    .labels = reduction_labels,
    .infer = reduce_infer<rules::reals>,
    .meaning = Reduce{ScalarOp::min, infinity},
    .precision = MixedPrecision::follow,
    .gradient = GradientRule(extremum_gradient),
    .samples = [] { return reduce_samples({i64, i32}); },
};

}  // namespace lathe::ir::ops
