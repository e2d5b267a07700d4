#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/tensor_data.h"
#include "models/import/ops/sizes/range_functions.h"

/// Ops without data operands: constants, ranges, fills.
namespace lathe::onnx {

namespace {

/// One of the attributes has the value.
Results constant_op(const OpCall& call) {
  if (const auto* value = call.find<HostTensor>("value")) return {Value::constant(*value)};
  if (call.has("value_int")) return {Value::constant(scalar_of(call.integer("value_int"), i64))};
  if (call.has("value_ints")) return {Value::constant(vector_of(call.integers("value_ints"), i64))};
  if (call.has("value_float")) return {Value::constant(scalar_of(call.real("value_float"), f32))};
  if (const auto* reals = call.find<std::vector<double>>("value_floats"))
    return {Value::constant(vector_of(*reals, f32))};
  call.fail("the constant has no value of numbers");
}

Results constant_of_shape(const OpCall& call) {
  const Shape shape(call.dims(0, "the shape"));
  const auto* value = call.find<HostTensor>("value");
  if (!value) return {call.graph().zeros(shape, f32)};
  if (value->numel() != 1) call.fail("the attribute value has more than one element", "import_attribute");
  return {call.graph().full(shape, value->get_number(0), value->dtype())};
}

/// Returns the only element of an operand.
const Dim& only(const std::vector<Dim>& dims, const OpCall& call) {
  if (dims.size() != 1) call.fail("start, limit and delta have one element each", "import_operand");
  return dims[0];
}

Results range_of_dims(const OpCall& call) {
  const std::vector<Dim> starts = call.dims(0, "start"), limits = call.dims(1, "limit");
  const Dim start = only(starts, call), limit = only(limits, call);
  const std::int64_t delta = call.integer(2, "delta");
  return {importing::integer_range(call, start, limit, delta, call.dtype(0))};
}

Results range_op(const OpCall& call) {
  const DType dtype = call.dtype(0);
  if (!is_float(dtype)) return range_of_dims(call);
  const double start = call.numbers(0, "start").item(), limit = call.numbers(1, "limit").item(),
               delta = call.numbers(2, "delta").item();
  return {importing::float_range(call, start, limit, delta, dtype)};
}

/// Ones on a diagonal of a matrix of the operand's shape.
Results eye_like(const OpCall& call) {
  const Value& like = call.operand(0);
  if (like.rank() != 2) call.fail("the operand is not a matrix", "import_operand");
  const DType dtype =
      call.has("dtype") ? dtype_of(call.integer("dtype"), call.node().location.place()) : like.dtype();
  const Tensor rows = call.graph().arange(like.shape()[0], i64).unsqueeze(1),
               columns = call.graph().arange(like.shape()[1], i64);
  return {(columns - rows == call.integer("k", 0)).to(dtype)};
}

}  // namespace

std::span<const OpRecord> source_ops() {
  static constexpr OpRecord records[] = {
      {"Constant", 1, 11, "value", constant_op},
      {"Constant", 12, latest, "value value_int value_ints value_float value_floats", constant_op},
      {"ConstantOfShape", 9, latest, "value", constant_of_shape},
      {"Range", 11, latest, "", range_op},
      {"EyeLike", 9, latest, "dtype k", eye_like},
  };
  return records;
}

}  // namespace lathe::onnx
