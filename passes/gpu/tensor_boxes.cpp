#include "passes/gpu/tensor_boxes.h"

#include <algorithm>

namespace lathe::gpu {

namespace {

using Axis = TensorBoxes::Axis;

/// The dims of an index, outermost first, as axes, innermost first: those of one element are left out, and neighbours
/// that lie side by side are joined.
std::vector<Axis> axes_of(const ProductOperand& operand, const std::vector<int>& dims, Axis::Of of) {
  const PointProgram& program = operand.operand.program;
  std::vector<Axis> axes;
  Dim below = 1;
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
    const Dim &size = program.domain[*d], &stride = program[0].form.coefficients[static_cast<std::size_t>(*d)];
    if (size.is(1)) continue;
    if (!axes.empty()) axes.back().outermost = false;
    if (!axes.empty() && stride == axes.back().stride * axes.back().size) {
      axes.back().size = axes.back().size * size;
      axes.back().outermost = true;
    } else {
      axes.push_back({of, size, stride, below});
    }
    below = below * size;
  }
  return axes;
}

bool at_least(const Dim& a, const Dim& b) {
  return a == b || (a.value() && b.value() && *a.value() >= *b.value()) || a.divided_by(b).has_value();
}

/// Whether an axis of `outer` lies around that of `inner`: its steps are whole ones of the other, and beyond its end.
bool lies_around(const Axis& inner, const Axis& outer) {
  const auto steps = outer.stride.divided_by(inner.stride);
  return steps && !steps->is(0) && at_least(*steps, inner.size);
}

}  // namespace

std::optional<TensorBoxes> TensorBoxes::of(const ProductOperand& operand) {
  constexpr std::size_t most_axes = 5;
  const PointProgram& program = operand.operand.program;
  if (program.size() != 1 || program[0].kind != PointInstruction::Kind::load) return std::nullopt;
  std::vector<Axis> rows = axes_of(operand, operand.rows, Axis::Of::row),
                    k = axes_of(operand, operand.k, Axis::Of::k),
                    others = axes_of(operand, operand.batch, Axis::Of::batch);
  if (rows.size() != 1 || k.size() != 1) return std::nullopt;
  const bool along_k = operand.axis == schedule::LaneAxis::k;
  const Axis inner = along_k ? k[0] : rows[0];
  if (!inner.stride.is(1)) return std::nullopt;
  std::erase_if(others, [](const Axis& a) { return a.stride.is(0); });  // the same for all of the batch
  others.push_back(along_k ? rows[0] : k[0]);
  if (others.size() + 1 > most_axes) return std::nullopt;
  TensorBoxes boxes{.axes = {inner}, .offset = program[0].form.offset};
  while (!others.empty()) {
    const auto next = std::find_if(others.begin(), others.end(), [&](const Axis& a) {
      return lies_around(boxes.axes.back(), a) &&
             std::all_of(others.begin(), others.end(), [&](const Axis& b) { return &a == &b || lies_around(a, b); });
    });
    if (next == others.end()) return std::nullopt;
    boxes.axes.push_back(*next);
    others.erase(next);
  }
  return boxes;
}

BoxCopies::BoxCopies(ProductParts& product, const ProductParts::Side& side, const TensorBoxes& boxes, int lines)
    : product_(product), side_(side), boxes_(boxes) {
  const Axis::Of across = side.along_k() ? Axis::Of::row : Axis::Of::k;
  kernel::Builder::Boxes tensor{.offset = product.context().dim(boxes.offset), .dims = {}};
  for (const Axis& axis : boxes.axes) {
    const int count = tensor.dims.empty() ? kernel::panel_side : axis.of == across ? lines : 1;
    tensor.dims.push_back({product.context().dim(axis.size), product.context().dim(axis.stride), count});
  }
  const PointInstruction& load = side.operand.operand.program[0];
  map_ = product.builder().tensor_map(product.context().buffer(product.buffer_of(load.buffer)), tensor);
}

void BoxCopies::copy(kernel::Value batch, kernel::Value row, kernel::Value k, kernel::Value place) const {
  std::vector<kernel::Value> at;
  for (const Axis& axis : boxes_.axes) {
    const kernel::Value index = axis.of == Axis::Of::batch ? batch : axis.of == Axis::Of::row ? row : k;
    const kernel::Value number = axis.below.is(1) ? index : index / product_.context().dim(axis.below);
    at.push_back(axis.outermost ? number : number % product_.context().dim(axis.size));
  }
  product_.builder().copy_box(side_.shared, place, map_, at);
}

}  // namespace lathe::gpu
