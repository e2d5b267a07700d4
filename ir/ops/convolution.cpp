#include "ir/ops/convolution.h"

#include "ir/ops/functional/functional_composites.h"

namespace lathe::ir {

namespace {

using Ints = std::vector<std::int64_t>;

/// Reverses the order of a dim of known size.
Value reversed(const Value& a, int d) {
  const std::int64_t size = a.shape()[d].value().value_or(1);
  if (size == 1) return a;
  const Value positions = iota(a.builder(), {Dim(size)}, 0, i64);
  return gather(a, sub(number_like(positions, static_cast<double>(size - 1)), positions), d);
}

/// [O, C / groups, k..] -> [C, O / groups, k reversed..]: the weights of the convolution that maps gradients of the
/// outputs to gradients of the inputs.
Value transposed_weight(const Value& weight, std::int64_t groups) {
  Value w = weight;
  for (int d = 2; d < weight.rank(); ++d) w = reversed(w, d);
  if (groups == 1) return transpose(w, 0, 1);
  const Dim outputs = *weight.shape()[0].unnamed().divided_by(groups);
  std::vector<Dim> split{Dim(groups), outputs}, merged{weight.shape()[1].unnamed() * Dim(groups), outputs};
  for (int d = 1; d < weight.rank(); ++d) split.push_back(weight.shape()[d]);
  for (int d = 2; d < weight.rank(); ++d) merged.push_back(weight.shape()[d]);
  return reshape(transpose(view(w, Shape(std::move(split))), 1, 2), Shape(std::move(merged)));
}

/// Moves element i of dim d to element i * step, with zeros between elements.
Value spread(const Value& a, int d, std::int64_t step) {
  if (step == 1) return a;
  Shape merged = a.shape();
  merged.set(d, merged[d].unnamed() * Dim(step));
  const Value zeros_after = reshape(pad(unsqueeze(a, d + 1), d + 1, 0, step - 1), merged);
  return slice(zeros_after, d, 0, merged[d] - Dim(step - 1));
}

/// Adds `low` and `high` zeros to dim d; a negative number removes elements.
Value resized(const Value& a, int d, const Dim& low, const Dim& high) {
  const auto removed = [](const Dim& zeros) { return zeros.value().value_or(0) < 0 ? Dim(0) - zeros : Dim(0); };
  const auto added = [](const Dim& zeros) { return zeros.value().value_or(0) < 0 ? Dim(0) : zeros; };
  Value result = a;
  if (!removed(low).is(0) || !removed(high).is(0))
    result = slice(result, d, removed(low), result.shape()[d].unnamed() - removed(high));
  if (!added(low).is(0) || !added(high).is(0)) result = pad(result, d, added(low), added(high));
  return result;
}

Attributes attributes_of(const Convolution& c) {
  return {{"stride", c.stride}, {"low", c.low}, {"high", c.high}, {"dilation", c.dilation}, {"groups", c.groups}};
}

}  // namespace

Convolution Convolution::plain(int spatial_dims) {
  const auto all = [&](std::int64_t number) { return Ints(static_cast<std::size_t>(spatial_dims), number); };
  return {.stride = all(1), .low = all(0), .high = all(0), .dilation = all(1), .groups = 1};
}

Value conv(const Value& x, const Value& weight, const Convolution& convolution) {
  return x.builder().add(ops::conv, {x, weight}, attributes_of(convolution));
}

Value conv(const Value& x, const Value& weight, const Value& bias, const Convolution& convolution) {
  return x.builder().add(ops::conv, {x, weight, bias}, attributes_of(convolution));
}

Value transposed_conv(const Value& y, const Value& weight, const Convolution& convolution,
                      std::span<const Dim> sizes) {
  const int spatial = y.rank() - 2;
  Convolution inner = Convolution::plain(spatial);
  inner.groups = convolution.groups;
  inner.dilation = convolution.dilation;
  Value x = y;
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int d = i + 2;
    const std::int64_t reach = convolution.dilation[at] * (weight.shape()[d].value().value_or(1) - 1);
    x = spread(x, d, convolution.stride[at]);
    const Dim low(reach - convolution.low[at]);
    x = resized(x, d, low, sizes[at].unnamed() + Dim(reach) - low - x.shape()[d].unnamed());
  }
  return conv(x, transposed_weight(weight, convolution.groups), inner);
}

}  // namespace lathe::ir
