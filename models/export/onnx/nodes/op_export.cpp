#include "models/export/onnx/nodes/op_export.h"

namespace lathe::onnx {

std::int64_t OpExport::axis(std::string_view attribute, int rank) const {
  const auto given = attr<std::int64_t>(attribute);
  return given < 0 ? given + rank : given;
}

Text OpExport::cast(Text value, DType to) const {
  return add("Cast", {value}, {integer_attribute("to", static_cast<std::int64_t>(element_type_of(to)))});
}

Text OpExport::transpose(Text value, const Ints& perm) const {
  return add("Transpose", {value}, {integers_attribute("perm", perm)});
}

/// A size of 0 in the shape of Reshape would keep a size of the operand, unless allowzero is set.
Text OpExport::reshape(Text value, const Shape& shape) const {
  Attributes attributes;
  for (const Dim& size : shape)
    if (!size.value() || size.is(0)) attributes = {integer_attribute("allowzero", 1)};
  return add("Reshape", {value, this->shape(shape)}, std::move(attributes));
}

Text OpExport::range(const Dim& size) const {
  return add("Range", {scalar(0, i64), this->size(size), scalar(1, i64)});
}

Text OpExport::full(const Shape& shape, const Number& value, DType dtype) const {
  return shape.rank() == 0 ? scalar(value, dtype) : expand(scalar(value, dtype), shape);
}

Text OpExport::where(Text condition, Text a, Text b, DType dtype) const {
  if (dtype != boolean) return add("Where", {condition, a, b});
  return add("Or", {add("And", {condition, a}), add("And", {add("Not", {condition}), b})});
}

}  // namespace lathe::onnx
