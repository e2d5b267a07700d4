#include "models/import/ops/whole_resize.h"

#include <fmt/core.h>

#include "frontend/ops/derived_ops.h"

namespace lathe::importing {

std::optional<std::int64_t> whole_factor(const Dim& inputs, const Dim& outputs) {
  const std::optional<Dim> factor = outputs.divided_by(inputs.unnamed());
  if (!factor || factor->value().value_or(0) < 1) return std::nullopt;
  return factor->value();
}

Tensor repeated(const Tensor& x, int axis, std::int64_t factor) {
  return factor == 1 ? x : repeat_interleave(x, factor, axis);
}

Tensor interpolated(const Tensor& x, int axis, std::int64_t factor) {
  if (factor == 1) return x;
  const Dim size = x.size(axis).unnamed();
  const Tensor before = concat({x.slice(axis, 0, 1), x.slice(axis, 0, size - Dim(1))}, axis),
               after = concat({x.slice(axis, 1, size), x.slice(axis, size - Dim(1), size)}, axis);
  std::vector<Tensor> phases;
  for (std::int64_t p = 0; p < factor; ++p) {
    const double offset = (static_cast<double>(p) + 0.5) / static_cast<double>(factor) - 0.5;
    const double weight = offset < 0 ? -offset : offset;
    phases.push_back(offset == 0 ? x : x * (1 - weight) + (offset < 0 ? before : after) * weight);
  }
  Shape shape = x.shape();
  shape.set(axis, size * Dim(factor));
  return stack(phases, axis + 1).reshape(shape);
}

std::optional<Dim> exact_part(const OpCall& call, const Dim& size, double factor) {
  constexpr std::int64_t most = 4096;
  for (std::int64_t k = 2; k <= most; k *= 2) {
    if (factor * static_cast<double>(k) != 1) continue;
    if (std::optional<Dim> part = size.divided_by(k)) return part;
    call.fail_size(fmt::format("the size {} is not known to be a multiple of {}", size.to_string(), k),
                   needed_multiple(size, k));
  }
  return std::nullopt;
}

Tensor element_of_groups(const Tensor& x, int axis, std::int64_t divisor, std::int64_t at) {
  const std::optional<Dim> groups = x.size(axis).divided_by(divisor);
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    shape.push_back(i == axis ? *groups : x.size(i));
    if (i == axis) shape.push_back(divisor);
  }
  return x.reshape(shape).slice(axis + 1, at, at + 1).squeeze(axis + 1);
}

Tensor centers_of_groups(const Tensor& x, int axis, std::int64_t divisor) {
  const std::int64_t middle = divisor / 2;
  const Tensor right = element_of_groups(x, axis, divisor, middle);
  return divisor % 2 == 1 ? right : (element_of_groups(x, axis, divisor, middle - 1) + right) * 0.5;
}

}  // namespace lathe::importing
