#include "passes/gpu/gemm/wgmma/tensor_boxes.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/copy_box.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"

namespace lathe::gpu {

namespace {

using Axis = TensorBoxes::Axis;

/// Converts the dims of an index, outermost first, to axes, innermost first. Dims of size 1 are dropped, and dims
/// that are contiguous in memory are merged.
std::vector<Axis> axes_of(const ElementwiseProgram& program, const std::vector<int>& dims, Axis::Of of) {
  std::vector<Axis> axes;
  Dim below = 1;
  for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
    const Dim &size = program.domain[*d], &stride = program[0].form.coefficients[*d];
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

/// Whether axis `outer` is around axis `inner`: its stride is a multiple of the other stride, and past the other's
/// end.
bool lies_around(const Axis& inner, const Axis& outer) {
  const auto steps = outer.stride.divided_by(inner.stride);
  return steps && !steps->is(0) && at_least(*steps, inner.size);
}

}  // namespace

WgmmaOperand WgmmaOperand::of(const ProductOperand& operand) {
  return {operand.operand.program, operand.batch, operand.rows, operand.k, operand.axis == LaneAxis::k};
}

WgmmaOperand WgmmaOperand::of(const AttentionOperand& operand, LaneAxis axis, bool sums_positions) {
  const ElementwiseProgram& program = operand.code.program;
  const bool along_depth = axis == LaneAxis::k;
  if (sums_positions) return {program, operand.outer, operand.depth, operand.position, !along_depth};
  return {program, operand.outer, operand.position, operand.depth, along_depth};
}

std::optional<TensorBoxes> TensorBoxes::of(const GpuInfo& gpu, const WgmmaOperand& operand) {
  const ElementwiseProgram& program = operand.program;
  if (program.size() != 1 || program[0].kind != ElementwiseInstruction::Kind::load) return std::nullopt;
  std::vector<Axis> rows = axes_of(program, operand.rows, Axis::Of::row),
                    k = axes_of(program, operand.k, Axis::Of::k),
                    others = axes_of(program, operand.batch, Axis::Of::batch);
  if (rows.size() != 1 || k.size() != 1) return std::nullopt;
  const bool along_k = operand.along_k;
  const Axis inner = along_k ? k[0] : rows[0];
  if (!inner.stride.is(1)) return std::nullopt;
  std::erase_if(others, [](const Axis& a) { return a.stride.is(0); });  // the same for the whole batch
  others.push_back(along_k ? rows[0] : k[0]);
  if (std::ssize(others) + 1 > gpu.most_box_dims) return std::nullopt;
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

BoxCopies::BoxCopies(KernelContext& context, kernel::Buffer from, const TensorBoxes& boxes, bool along_k, int rows,
                     int depth)
    : context_(context), boxes_(boxes), rows_(rows), depth_(depth), step_(along_k ? rows : kernel::swizzle_side) {
  const Axis::Of across = along_k ? Axis::Of::row : Axis::Of::k;
  kernel::Builder::Boxes tensor{.offset = context.dim(boxes.offset), .dims = {}};
  for (const Axis& axis : boxes.axes) {
    const int count = tensor.dims.empty() ? kernel::swizzle_side : axis.of == across ? step_ : 1;
    tensor.dims.push_back({context.dim(axis.size), context.dim(axis.stride), count});
  }
  map_ = context.builder.tensor_map(from, tensor);
}

void BoxCopies::copy(kernel::Buffer to, kernel::Value batch, kernel::Value row, kernel::Value k,
                     kernel::Value offset) const {
  for (int at_k = 0; at_k < depth_; at_k += kernel::wgmma_depth)
    for (int at_row = 0; at_row < rows_; at_row += step_)
      copy_box(to, batch, row + at_row, k + at_k, offset + (at_k * rows_ + at_row * kernel::wgmma_depth));
}

void BoxCopies::copy_box(kernel::Buffer to, kernel::Value batch, kernel::Value row, kernel::Value k,
                         kernel::Value offset) const {
  std::vector<kernel::Value> at;
  for (const Axis& axis : boxes_.axes) {
    const kernel::Value index = axis.of == Axis::Of::batch ? batch : axis.of == Axis::Of::row ? row : k;
    const kernel::Value number = axis.below.is(1) ? index : index / context_.dim(axis.below);
    at.push_back(axis.outermost ? number : number % context_.dim(axis.size));
  }
  kernel::copy_box(context_.builder, to, offset, map_, at);
}

}  // namespace lathe::gpu
