#include "ir/ops/convolution.h"

#include <algorithm>
#include <numeric>

#include "ir/ops/dilated.h"
#include "ir/ops/functional/functional_composites.h"

namespace lathe::ir {

namespace {

using Ints = std::vector<std::int64_t>;

/// [O, C / groups, k..] -> [C, O / groups, k..].
Value channels_swapped(const Value& weight, std::int64_t groups) {
  if (groups == 1) return transpose(weight, 0, 1);
  const Dim outputs = *weight.shape()[0].unnamed().divided_by(groups);
  std::vector<Dim> split{Dim(groups), outputs}, merged{weight.shape()[1].unnamed() * Dim(groups), outputs};
  for (int d = 1; d < weight.rank(); ++d) split.push_back(weight.shape()[d]);
  for (int d = 2; d < weight.rank(); ++d) merged.push_back(weight.shape()[d]);
  return reshape(transpose(view(weight, Shape(std::move(split))), 1, 2), Shape(std::move(merged)));
}

/// Adds `low` and `high` zeros to dim d; a negative number removes elements.
Value resized(const Value& a, int d, const Dim& low, const Dim& high) {
  const auto removed = [](const Dim& zeros) { return zeros.value().value_or(0) < 0 ? Dim(0) - zeros : Dim(0); };
  const auto added = [](const Dim& zeros) { return zeros.value().value_or(0) < 0 ? Dim(0) : zeros; };
  Value result = a;
  const auto size = a.shape()[d].value(), below = removed(low).value(), above = removed(high).value();
  if (size && below && above && *below + *above > *size)  // all elements are removed, and zeros too
    return pad(slice(a, d, 0, 0), d, a.shape()[d].unnamed() + low + high, 0);
  if (!removed(low).is(0) || !removed(high).is(0))
    result = slice(result, d, removed(low), result.shape()[d].unnamed() - removed(high));
  if (!added(low).is(0) || !added(high).is(0)) result = pad(result, d, added(low), added(high));
  return result;
}

Attributes attributes_of(const Convolution& c) {
  return {{"stride", c.stride}, {"low", c.low}, {"high", c.high}, {"dilation", c.dilation}, {"groups", c.groups}};
}

/// The transpose of a convolution, in a form that depends on its steps:
/// - Windows that do not overlap: each element of the input is in one window at most, so one product gives all of
/// them.
/// - Otherwise the elements at i = q stride + r, for each r, are a convolution of y by every stride-th element of the
///   kernel, and the results for all r alternate. Nothing is multiplied by zeros.
/// - Many such r: one convolution of y with zeros between its elements.
class Transpose {
 public:
  Transpose(const Value& y, const Value& weight, const Convolution& convolution, std::span<const Dim> sizes)
      : y_(y), weight_(weight), c_(convolution), sizes_(sizes), spatial_(y.rank() - 2) {}

  Value run() {
    if (!overlaps()) return separate_windows();
    constexpr std::int64_t most_phases = 4;
    std::int64_t phases = 1;
    bool whole = true;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      phases *= c_.stride[i];
      whole = whole && steps(i).has_value();
    }
    Convolution inner = Convolution::plain(spatial_);
    inner.groups = c_.groups;
    inner.dilation = c_.dilation;
    const Value swapped = channels_swapped(weight_, c_.groups);
    return whole && phases <= most_phases ? alternating(0, y_, swapped, inner) : with_zeros(swapped, inner);
  }

 private:
  std::int64_t kernel(std::size_t i) const { return weight_.shape()[static_cast<int>(i) + 2].value().value_or(1); }
  /// The number of q: the size of dim i, divided by the stride and rounded up, if that is a polynomial.
  std::optional<Dim> steps(std::size_t i) const {
    for (std::int64_t r = 0; r < c_.stride[i]; ++r)
      if (const auto count = (sizes_[i].unnamed() + Dim(r)).divided_by(c_.stride[i])) return count;
    return std::nullopt;
  }

  bool overlaps() const {
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (c_.dilation[i] != 1 || kernel(i) > c_.stride[i]) return true;
    return c_.groups > 1;
  }

  /// weight [O, C, u..], y [B, O, x..] -> [B, C, x, u, ..] -> [B, C, x * u, ..].
  Value separate_windows() const {
    constexpr std::string_view outputs = "xyz", kernels = "uvw";
    std::string interleaved;
    for (std::size_t i = 0; i < sizes_.size(); ++i) interleaved += {outputs[i], kernels[i]};
    Value x = contract(weight_, y_,
                       "oc" + std::string(kernels.substr(0, sizes_.size())) + ",bo" +
                           std::string(outputs.substr(0, sizes_.size())) + "->bc" + interleaved);
    std::vector<Dim> merged{x.shape()[0], x.shape()[1]};
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const int window = 3 + 2 * static_cast<int>(i);
      if (kernel(i) < c_.stride[i]) x = pad(x, window, 0, c_.stride[i] - kernel(i));
      merged.push_back(x.shape()[window - 1].unnamed() * Dim(c_.stride[i]));
    }
    x = reshape(x, Shape(std::move(merged)));
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      x = moved(x, static_cast<int>(i) + 2, Dim(0) - Dim(c_.low[i]), sizes_[i]);
    return x;
  }

  /// Adds `low` elements before dim d, and as many after it as give it a size.
  static Value moved(const Value& a, int d, const Dim& low, const Dim& size) {
    return resized(a, d, low, size.unnamed() - low - a.shape()[d].unnamed());
  }

  /// Dims from i on. The element of the kernel at k multiplies y[(i + low - k dilation) / stride].
  Value alternating(std::size_t i, const Value& y, const Value& weight, const Convolution& inner) const {
    if (i == sizes_.size()) return conv(y, weight, inner);
    const int d = static_cast<int>(i) + 2;
    const std::int64_t stride = c_.stride[i], dilation = c_.dilation[i];
    const Dim count = *steps(i);
    std::vector<Value> phases;
    for (std::int64_t r = 0; r < stride; ++r) {
      std::int64_t first = 0;
      while (first < kernel(i) && (r + c_.low[i] - first * dilation) % stride != 0) ++first;
      if (first == kernel(i)) {
        phases.push_back(no_terms(i, y, weight));
        continue;
      }
      const std::int64_t step = stride / std::gcd(stride, dilation), taps = (kernel(i) - 1 - first) / step + 1;
      const std::int64_t apart = dilation * step / stride, reach = apart * (taps - 1);
      const Dim low(reach - (r + c_.low[i] - first * dilation) / stride);
      Convolution next = inner;
      next.dilation[i] = apart;
      const Value part = slice(weight, d, first, Dim(first + (taps - 1) * step + 1), step);
      phases.push_back(alternating(i + 1, moved(y, d, low, count + Dim(reach)), flip(part, d), next));
    }
    if (stride == 1) return phases[0];
    const Value stacked = stack(phases, d + 1);
    Shape merged = phases[0].shape();
    merged.set(d, count * Dim(stride));
    return slice(reshape(stacked, merged), d, 0, sizes_[i].unnamed());
  }

  /// The result of a phase of dim i that no element of the kernel reaches.
  Value no_terms(std::size_t i, const Value& y, const Value& weight) const {
    Shape shape{y.shape()[0], weight.shape()[0]};
    for (std::size_t k = 0; k < sizes_.size(); ++k) shape.push_back(k <= i ? *steps(k) : sizes_[k].unnamed());
    return full(y.builder(), shape, 0, y.dtype());
  }

  Value with_zeros(const Value& weight, const Convolution& inner) const {
    Value x = y_, w = weight;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const int d = static_cast<int>(i) + 2;
      const std::int64_t reach = c_.dilation[i] * (kernel(i) - 1);
      x = moved(spread(x, d, c_.stride[i]), d, Dim(reach - c_.low[i]), sizes_[i].unnamed() + Dim(reach));
      w = flip(w, d);
    }
    return conv(x, w, inner);
  }

  const Value &y_, &weight_;
  const Convolution& c_;
  std::span<const Dim> sizes_;
  int spatial_;
};

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
  if (std::ranges::any_of(sizes, [](const Dim& size) { return size.is(0); })) {
    std::vector<Dim> empty{y.shape()[0], weight.shape()[1].unnamed() * Dim(convolution.groups)};
    empty.insert(empty.end(), sizes.begin(), sizes.end());
    return full(y.builder(), Shape(std::move(empty)), 0, y.dtype());
  }
  return Transpose(y, weight, convolution, sizes).run();
}

}  // namespace lathe::ir
