#include "models/import/ops/whole_resize.h"

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

}  // namespace lathe::importing
