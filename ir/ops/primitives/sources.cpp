#include <fmt/core.h>

#include <cmath>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/indexing/indices.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/numbers/philox.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/constants.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

constexpr NotDifferentiable no_operands{"it has no operands"};
constexpr NotDifferentiable random_bits{"random bits do not depend smoothly on the seed"};

/// No dim of the result corresponds to an operand dim.
constexpr DimRule no_dims = [](const Graph&, const Node&) { return std::vector<DimPair>(); };

DType dtype_held(DType dtype) {
  if (is_float(dtype)) return f64;
  if (is_integer(dtype) || is_byte(dtype)) return i64;
  return is_complex(dtype) ? c128 : boolean;
}

// ---- constant

/// Returns the number of values per element: a complex element has two parts.
std::size_t parts(DType dtype) { return is_complex(dtype) ? 2 : 1; }

void require_representable(const InferContext& ctx, DType dtype, const Number& value) {
  if (!value.fits(dtype))
    ctx.fail("constant_value", fmt::format("{} is no {}", value.to_string(), name(dtype)),
             dtype == boolean ? "give 0 or 1" : "give a whole number in range, or another dtype");
}

TensorType constant_infer(const InferContext& ctx) {
  const DType dtype = ctx.attr<DType>("dtype");
  const auto& shape = ctx.attr<Shape>("shape");
  const auto& values = ctx.attr<NumberList>("values");
  rules::require_sizes(ctx, shape);
  const bool splat = values.size() == 1 || values.size() == parts(dtype);
  const Dim count = shape.numel() * Dim(static_cast<std::int64_t>(parts(dtype)));
  if (!splat && count != Dim(static_cast<std::int64_t>(values.size())))
    ctx.fail("constant_count",
             fmt::format("{} values are given for {}{}", values.size(), name(dtype), shape.to_string()),
             count.value() ? fmt::format("give one value for all or {} of them", *count.value())
                           : std::string("give one value: the number of elements is known only at run time"));
  for (std::size_t i = 0; i < values.size(); ++i) require_representable(ctx, dtype, values[i]);
  return TensorType::contiguous(dtype, shape);
}

HostTensor constant_reference(const Node& node, Operands, const Sizes& sizes) {
  const NumberList values = constant_values(node);
  const DType dtype = node.type.dtype;
  HostTensor result(dtype_held(dtype), sizes);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    const auto at = [&](std::size_t part) {
      const std::size_t k = static_cast<std::size_t>(i) * parts(dtype) + part;
      return values.size() <= parts(dtype) ? (part < values.size() ? values[part] : Number()) : values[k];
    };
    if (is_complex(dtype))
      set_complex(result, i, {at(0).real(), at(1).real()});
    else
      result.set_number(i, at(0));
  }
  return result;
}

std::vector<Sample> constant_samples() {
  const auto sample = [](DType dtype, Shape shape, NumberList values) {
    return Sample{.operands = {},
                  .attrs = {{"dtype", dtype}, {"shape", std::move(shape)}, {"values", std::move(values)}}};
  };
  return {sample(f64, {2, 3}, {0.5}),   sample(f64, {2, 2}, {1, -2, 0.25, 4}),
          sample(i64, {3}, {3, -1, 7}), sample(boolean, {2}, {1, 0}),
          sample(i8, {2}, {-128, 127}), sample(u8, {2}, {0, 255}),
          sample(f64, {}, {1.5}),       sample(f64, {2, 0}, {}),
          sample(f32, {1, 1}, {0.1}),   sample(c128, {2}, {1, 2, 3, 4}),
          sample(c128, {2}, {2}),       sample(i64, {2}, {INT64_MIN, INT64_MAX}),
          sample(bf16, {}, {0.1}),      sample(f16, {2}, {0.1, 65519.0})};
}

constexpr AttrSpec constant_attrs[] = {
    {"dtype", AttrKind::dtype, true, {}, "the dtype of the result"},
    {"shape", AttrKind::shape, true, {}, "the shape of the result"},
    {"values",
     AttrKind::numbers,
     true,
     {},
     "one value for all elements, or one per element in row-major order; complex: re, im"},
};
constexpr std::string_view constant_labels[] = {"constant_count", "constant_value", "dim_negative"};

// ---- iota

TensorType iota_infer(const InferContext& ctx) {
  const auto& shape = ctx.attr<Shape>("shape");
  rules::require_sizes(ctx, shape);
  ctx.axis(ctx.attr<std::int64_t>("dim"), shape.rank());
  return TensorType::contiguous(rules::require_dtype_attr(ctx, rules::reals), shape);
}

HostTensor iota_reference(const Node& node, Operands, const Sizes& sizes) {
  const auto rank = static_cast<int>(sizes.size());
  const auto dim = static_cast<std::size_t>(rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank));
  HostTensor result(dtype_held(node.type.dtype), sizes);  // its number of elements fits
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < sizes.size(); ++d) inner *= sizes[d];
  for (std::int64_t i = 0; i < result.numel(); ++i) result.set_int(i, i / inner % sizes[dim]);
  return result;
}

std::vector<Sample> iota_samples() {
  const auto sample = [](Shape shape, std::int64_t dim, DType dtype) {
    return Sample{.operands = {}, .attrs = {{"shape", std::move(shape)}, {"dim", dim}, {"dtype", dtype}}};
  };
  return {sample({4}, 0, i64), sample({2, 3}, -1, f64), sample({2, 3, 2}, 1, i32), sample({1}, 0, i64),
          sample({0, 2}, 1, f32)};
}

constexpr AttrSpec iota_attrs[] = {
    {"shape", AttrKind::shape, true, {}, "the shape of the result"},
    {"dim", AttrKind::integer, true, {}, "the dim whose index is returned"},
    {"dtype", AttrKind::dtype, true, {}, "the dtype of the result: a float or an integer"},
};
constexpr std::string_view iota_labels[] = {"dim_range", "dtype_kind", "dim_negative"};

// ---- random_uniform

void require_random_state(const InferContext& ctx) {
  const TensorType& state = ctx.operand(0);
  if (state.dtype != i64 || state.rank() != 1 || !state.shape[0].is(2))
    ctx.fail("random_state", fmt::format("the state must be i64[2], not {}", rules::describe(ctx, 0)),
             "it holds {seed, step}");
}

TensorType random_infer(const InferContext& ctx) {
  require_random_state(ctx);
  const auto& shape = ctx.attr<Shape>("shape");
  rules::require_sizes(ctx, shape);
  return TensorType::contiguous(rules::require_dtype_attr(ctx, rules::floats), shape);
}

/// Returns the random bits of a draw: the precision of the dtype below 1, at most 24.
int random_bits_of(DType dtype) {
  if (dtype == bf16) return 8;
  return dtype == f16 ? 11 : 24;
}

/// Draws element number i as word0 of the Philox 4x32-10 block with
///   counter = {i low, i high, step low, step high},  key = {seed low ^ (stream low * 0x9E3779B9), seed high}
/// (all 32-bit words, the product wraps). The value is (word0 >> (32 - p)) * 2^-p, where p is 24 for f64 and f32, 11
/// for f16, 8 for bf16: always below 1, and exact. Compiled code must draw the same values.
HostTensor draw(const Node& node, const HostTensor& state, const Sizes& sizes, const HostTensor* numbers) {
  const auto low = [](std::uint64_t v) { return static_cast<std::uint32_t>(v); };
  const auto high = [](std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); };
  const auto seed = static_cast<std::uint64_t>(state.get_int(0));
  const auto step = static_cast<std::uint64_t>(state.get_int(1));
  const auto stream = static_cast<std::uint64_t>(node.attrs.get<std::int64_t>("stream"));
  const PhiloxKey key = {low(seed) ^ (low(stream) * 0x9E3779B9u), high(seed)};
  const int bits = random_bits_of(node.type.dtype);
  HostTensor result(f64, sizes);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(numbers ? numbers->get_int(i) : i);
    const PhiloxWords words = philox({low(index), high(index), low(step), high(step)}, key);
    result.set(i, std::ldexp(static_cast<double>(words[0] >> (32 - bits)), -bits));
  }
  return result;
}

/// Numbers elements in row-major order.
HostTensor random_reference(const Node& node, Operands operands, const Sizes& sizes) {
  return draw(node, *operands[0], sizes, nullptr);
}

std::vector<Sample> random_samples() {
  const auto sample = [](Shape shape, DType dtype, std::int64_t stream) {
    return Sample{.operands = {{{2}, i64, 0, 1000}},
                  .attrs = {{"shape", std::move(shape)}, {"dtype", dtype}, {"stream", stream}}};
  };
  return {sample({3, 5}, f32, 0), sample({7}, f64, 3), sample({4}, bf16, 1),
          sample({4}, f16, 2),    sample({}, f32, 1),  sample({2, 0}, f32, 1)};
}

constexpr AttrSpec random_attrs[] = {
    {"shape", AttrKind::shape, true, {}, "the shape of the result"},
    {"dtype", AttrKind::dtype, true, {}, "the dtype of the result: a float"},
    {"stream", AttrKind::integer, true, {}, "distinguishes the draws of a graph"},
};
constexpr std::string_view random_labels[] = {"random_state", "dtype_kind", "dim_negative"};

// ---- random_uniform_at

TensorType random_at_infer(const InferContext& ctx) {
  require_random_state(ctx);
  require_indices(ctx, 1);
  return TensorType::contiguous(rules::require_dtype_attr(ctx, rules::floats), ctx.operand(1).shape);
}

HostTensor random_at_reference(const Node& node, Operands operands, const Sizes& sizes) {
  return draw(node, *operands[0], sizes, operands[1]);
}

std::vector<DimPair> random_at_dims(const Graph&, const Node& node) {
  std::vector<DimPair> pairs;
  for (int d = 0; d < node.type.rank(); ++d) pairs.push_back({1, d, d});
  return pairs;
}

std::vector<Sample> random_at_samples() {
  const auto sample = [](Sizes sizes, DType dtype, std::int64_t stream) {
    return Sample{.operands = {{{2}, i64, 0, 1000}, {std::move(sizes), i64, 0, 100}},
                  .attrs = {{"dtype", dtype}, {"stream", stream}}};
  };
  return {sample({3, 5}, f32, 0), sample({7}, f64, 3), sample({1}, bf16, 1),
          sample({4}, f16, 2),    sample({}, f32, 1),  sample({3, 0}, f32, 1)};
}

constexpr AttrSpec random_at_attrs[] = {
    {"dtype", AttrKind::dtype, true, {}, "the dtype of the result: a float"},
    {"stream", AttrKind::integer, true, {}, "distinguishes the draws of a graph"},
};
constexpr std::string_view random_at_labels[] = {"random_state", "index_dtype", "dtype_kind"};

}  // namespace

constinit const Op constant = {
    .name = "constant",
    .doc = "numbers stored in the graph",
    .arity = Arity{0, 0},
    .attrs = constant_attrs,
    .labels = constant_labels,
    .infer = constant_infer,
    .meaning = Custom{CustomKind::constant, constant_reference, no_dims},
    .precision = MixedPrecision::follow,
    .gradient = no_operands,
    .samples = constant_samples,
};

constinit const Op iota = {
    .name = "iota",
    .doc = "each element is its own index along a dim",
    .arity = Arity{0, 0},
    .attrs = iota_attrs,
    .labels = iota_labels,
    .infer = iota_infer,
    .meaning = Custom{CustomKind::iota, iota_reference, no_dims},
    .precision = MixedPrecision::follow,
    .gradient = no_operands,
    .samples = iota_samples,
};

constinit const Op random_uniform = {
    .name = "random_uniform",
    .doc = "uniform in [0, 1) by Philox 4x32-10 from a state {seed, step}, the stream and the element's index",
    .arity = Arity{1, 1},
    .attrs = random_attrs,
    .labels = random_labels,
    .infer = random_infer,
    .meaning = Custom{CustomKind::random, random_reference, no_dims},
    .precision = MixedPrecision::follow,
    .gradient = random_bits,
    .samples = random_samples,
};

constinit const Op random_uniform_at = {
    .name = "random_uniform_at",
    .doc = "random_uniform with explicit element numbers, for a process's shard of a draw",
    .arity = Arity{2, 2},
    .attrs = random_at_attrs,
    .labels = random_at_labels,
    .infer = random_at_infer,
    .meaning = Custom{CustomKind::random_at, random_at_reference, DimRule(random_at_dims)},
    .precision = MixedPrecision::follow,
    .gradient = random_bits,
    .samples = random_at_samples,
};

}  // namespace lathe::ir::ops
