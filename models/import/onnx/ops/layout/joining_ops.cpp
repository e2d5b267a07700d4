#include <fmt/core.h>

#include "frontend/ops/spatial/pooling.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

/// Ops that join, split and surround tensors.
namespace lathe::onnx {

namespace {

Results concat_op(const OpCall& call) {
  const std::vector<Tensor> parts = call.tensors();
  if (parts.empty()) call.fail("there are no operands", "import_operand");
  const int axis = call.axis(call.integer("axis"), parts[0].rank());
  if (parts.size() == 1) return {parts[0]};
  return {concat(parts, axis)};
}

/// Returns the sizes of the parts: those of operand 1, or equal ones. The last part may be smaller.
std::vector<Dim> part_sizes(const OpCall& call, const Dim& whole) {
  if (call.has(1)) return call.dims(1, "the sizes of the parts");
  if (call.has("split")) {
    const Ints sizes = call.integers("split");
    return {sizes.begin(), sizes.end()};
  }
  const auto results = static_cast<std::int64_t>(call.node().results.size());
  const std::int64_t count = call.integer("num_outputs", results);
  if (count != results) call.fail(fmt::format("{} outputs for {} parts", results, count), "import_attribute");
  if (const std::optional<Dim> equal = whole.divided_by(count)) return std::vector<Dim>(count, *equal);
  if (!whole.value())
    call.fail_size(fmt::format("the size {} is not known to be a multiple of {} parts", whole.to_string(), count),
                   importing::needed_multiple(whole, count));
  const std::int64_t size = (*whole.value() + count - 1) / count;
  std::vector<Dim> sizes(static_cast<std::size_t>(count), Dim(size));
  const std::int64_t rest = *whole.value() - size * (count - 1);
  if (rest < 0) call.fail(fmt::format("{} elements for {} parts", *whole.value(), count), "import_attribute");
  sizes.back() = rest;
  return sizes;
}

Results split_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", 0), x.rank());
  Dim start = 0;
  Results parts;
  for (const Dim& size : part_sizes(call, x.size(axis).unnamed())) {
    parts.emplace_back(x.slice(axis, start, start + size));
    start = start + size;
  }
  if (start != x.size(axis))
    call.fail(
        fmt::format("the parts have {} elements, and the dim has {}", start.to_string(), x.size(axis).to_string()),
        "import_operand");
  return parts;
}

PadMode pad_mode(const std::string& mode, const OpCall& call) {
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::replicate;
  if (mode == "wrap") return PadMode::circular;
  if (mode != "constant") call.fail(fmt::format("the attribute mode is '{}'", mode), "import_attribute");
  return PadMode::zeros;
}

bool is_negative(const Dim& dim) { return importing::sign_of(dim) == importing::Sign::negative; }

/// Removes the elements that negative pads take away.
Tensor cropped(const Tensor& x, int axis, Dim& low, Dim& high) {
  const Dim size = x.size(axis), start = is_negative(low) ? Dim(0) - low : Dim(0),
            end = is_negative(high) ? size + high : size;
  if (is_negative(low)) low = 0;
  if (is_negative(high)) high = 0;
  return start.is(0) && end == size ? x : x.slice(axis, start, end);
}

/// Adds elements of a value that is computed at run time.
Tensor padded_with(const Tensor& x, int axis, const Dim& low, const Dim& high, const Tensor& value) {
  std::vector<Tensor> parts;
  const auto add = [&](const Dim& size) {
    Shape shape = x.shape();
    shape.set(axis, size);
    if (!size.is(0)) parts.push_back(value.expand(shape));
  };
  add(low);
  parts.push_back(x);
  add(high);
  return concat(parts, axis);
}

Results pad_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  std::vector<Dim> pads;
  if (call.has("pads"))  // before opset 11
    for (const std::int64_t size : call.integers("pads")) pads.emplace_back(size);
  else
    pads = call.dims(1, "pads");
  Ints axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (call.has(3)) axes = axes_from_front(call, call.integers(3, "axes"), x.rank());
  if (pads.size() != 2 * axes.size())
    call.fail(fmt::format("{} pads for {} axes", pads.size(), axes.size()), "import_operand");
  const PadMode mode = pad_mode(call.text("mode", "constant"), call);
  Number value = call.real("value", 0);
  if (call.has(2) && !call.operand(2).shape().numel().is(1))
    call.fail("constant_value has more than one element", "import_operand");
  const bool is_computed = call.has(2) && !call.operand(2).numbers();
  if (call.has(2) && !is_computed) value = call.operand(2).numbers()->get_number(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = static_cast<int>(axes[i]);
    Dim low = pads[i], high = pads[i + axes.size()];
    x = cropped(x, axis, low, high);
    if (low.is(0) && high.is(0)) continue;
    if (mode != PadMode::zeros)
      x = pad(x, axis, {.low = low, .high = high, .mode = mode});
    else
      x = is_computed ? padded_with(x, axis, low, high, call.tensor(2).reshape({}))
                      : padded(x, axis, low, high, value);
  }
  return {x};
}

/// Pads with zeros or crops each axis around its center to a size.
Results center_crop_pad(const OpCall& call) {
  Tensor x = call.tensor(0);
  const Ints sizes = call.integers(1, "the shape");
  Ints axes;
  for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (call.has("axes")) axes = axes_from_front(call, call.integers("axes"), x.rank());
  if (sizes.size() != axes.size())
    call.fail(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()), "import_operand");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = static_cast<int>(axes[i]);
    if (!x.size(axis).value()) call.fail(fmt::format("dim {} has an unknown size", axis), "import_size");
    const std::int64_t size = *x.size(axis).value(), wanted = sizes[i];
    if (wanted < size) {
      const std::int64_t start = (size - wanted) / 2;
      x = x.slice(axis, start, start + wanted);
    } else if (wanted > size) {
      const std::int64_t low = (wanted - size) / 2;
      x = padded(x, axis, low, wanted - size - low, 0);
    }
  }
  return {x};
}

}  // namespace

std::span<const OpRecord> joining_ops() {
  static constexpr OpRecord records[] = {
      {"Concat", 4, latest, "axis", concat_op, Moves::all},
      {"Split", 2, 12, "axis split", split_op, Moves::first},
      {"Split", 13, 17, "axis", split_op, Moves::first},
      {"Split", 18, latest, "axis num_outputs", split_op, Moves::first},
      {"Pad", 2, 10, "mode pads value", pad_op},
      {"Pad", 11, latest, "mode", pad_op},
      {"CenterCropPad", 18, latest, "axes", center_crop_pad},
  };
  return records;
}

}  // namespace lathe::onnx
