#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"

/// Helpers for the records of elementwise primitives.
namespace lathe::ir::ops {

inline constexpr std::string_view unary_labels[] = {"dtype_kind"};
inline constexpr std::string_view binary_labels[] = {"dtype_match", "dtype_kind", "broadcast"};

using Reference = double (*)(std::span<const double>);

/// Infers the type of an op whose operands and result have one dtype among `kinds`.
template <unsigned kinds>
TensorType infer_same(const InferContext& ctx) {
  return rules::elementwise_type(ctx, kinds);
}
/// Same with a bool result.
template <unsigned kinds>
TensorType infer_comparison(const InferContext& ctx) {
  return TensorType::contiguous(boolean, rules::elementwise_type(ctx, kinds).shape);
}

constexpr Op unary(std::string_view name, std::string_view doc, ScalarOp op, MixedPrecision precision,
                   Reference reference, TensorType (*infer)(const InferContext&), Gradient gradient,
                   std::vector<Sample> (*samples)()) {
  return Op{.name = name,
            .doc = doc,
            .arity = Arity{1, 1},
            .attrs = std::span<const AttrSpec>(),
            .labels = unary_labels,
            .infer = infer,
            .meaning = Elementwise{op, reference},
            .precision = precision,
            .gradient = gradient,
            .samples = samples};
}

constexpr Op binary(std::string_view name, std::string_view doc, ScalarOp op, MixedPrecision precision,
                    Reference reference, TensorType (*infer)(const InferContext&), Gradient gradient,
                    std::vector<Sample> (*samples)(), std::span<const std::string_view> labels = binary_labels) {
  return Op{.name = name,
            .doc = doc,
            .arity = Arity{2, 2},
            .attrs = std::span<const AttrSpec>(),
            .labels = labels,
            .infer = infer,
            .meaning = Elementwise{op, reference},
            .precision = precision,
            .gradient = gradient,
            .samples = samples};
}

/// Returns samples with values in [low, high]: a matrix, a scalar, a size-1 and a zero-size tensor.
inline std::vector<Sample> unary_samples(double low, double high, std::vector<DType> dtypes = {f64}) {
  std::vector<Sample> samples;
  for (const DType dtype : dtypes) samples.push_back({.operands = {{{2, 3}, dtype, low, high}}, .attrs = {}});
  const DType first = dtypes.front();
  samples.push_back({.operands = {{{}, first, low, high}}, .attrs = {}});
  samples.push_back({.operands = {{{1, 1}, first, low, high}}, .attrs = {}});
  samples.push_back({.operands = {{{3, 0}, first, low, high}}, .attrs = {}});
  return samples;
}

/// Returns samples with equal shapes, each side broadcast, scalars and zero-size dims; the second operand is in [low,
/// high].
inline std::vector<Sample> binary_samples(double low, double high, std::vector<DType> dtypes = {f64},
                                          double first_low = -2, double first_high = 2) {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](const Sizes& a, const Sizes& b, DType dtype) {
    samples.push_back({.operands = {{a, dtype, first_low, first_high}, {b, dtype, low, high}}, .attrs = {}});
  };
  for (const DType dtype : dtypes) sample({2, 3}, {2, 3}, dtype);
  const DType first = dtypes.front();
  for (const auto& [a, b] : std::vector<std::pair<Sizes, Sizes>>{
           {{2, 3}, {3}}, {{3}, {2, 3}}, {{2, 1}, {1, 3}}, {{}, {2}}, {{}, {}}, {{2, 0}, {1}}, {{1}, {1, 1}}})
    sample(a, b, first);
  return samples;
}

}  // namespace lathe::ir::ops
