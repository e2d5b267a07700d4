#include <fmt/core.h>

#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that keep the elements or change their dtype.
namespace lathe::pt2 {

namespace {

Results identity(const OpCall& call) { return {call.operand(0)}; }

Value converted(const OpCall& call, DType dtype) {
  const Value& x = call.operand(0);
  if (is_complex(dtype) && !is_complex(x.dtype())) return operand_as(call, 0, dtype);
  return x.dtype() == dtype ? x : Value(call.tensor(0).to(dtype));
}

Results convert(const OpCall& call) { return {converted(call, dtype_argument(call, call.dtype(0)))}; }
Results convert_to_other(const OpCall& call) { return {converted(call, call.dtype(1))}; }

/// Dims that become integers of 64 bits stay dims.
std::optional<DimTensor> folded_conversion(const OpCall& call) {
  const DType dtype = dtype_argument(call, call.dtype(0));
  DimTensor dims = *call.operand(0).dims();
  if (dtype != i64 && dtype != dims.dtype) return std::nullopt;
  dims.dtype = dtype;
  return dims;
}

Results detached(const OpCall& call) {
  const Value& x = call.operand(0);
  return {x.constant() || !is_float(x.dtype()) ? x : Value(detach(call.tensor(0)))};
}

/// Copies elements over a tensor, in its shape and dtype.
Results copy_op(const OpCall& call) {
  const Value& to = call.operand(0);
  return {call.tensor(1).to(to.dtype()).expand(to.shape())};
}

/// Checks of types that hold at import.
Results assert_metadata(const OpCall& call) {
  // Sizes and strides are those of the export, and hold for its example only.
  call.ignore({"size", "stride"});
  if (const DType wanted = dtype_argument(call, call.dtype(0)); wanted != call.dtype(0))
    call.fail(fmt::format("the tensor is {}, and the program requires {}", name(call.dtype(0)), name(wanted)),
              "import_dtype");
  return {};
}

}  // namespace

std::span<const OpRecord> aten_conversion_ops() {
  static constexpr OpRecord records[] = {
      aten("clone", "self", "", identity),
      aten("contiguous", "self", "", identity),
      aten("alias", "self", "", identity),
      aten("lift_fresh_copy", "self", "", identity),
      aten("lift_fresh", "self", "", identity),
      aten("detach", "self", "", detached),
      aten("detach_", "self", "", detached),
      aten("_to_copy", "self", "dtype", convert, Moves::none, folded_conversion),
      aten("to.dtype", "self", "dtype", convert, Moves::none, folded_conversion),
      aten("to.dtype_layout", "self", "dtype", convert, Moves::none, folded_conversion),
      aten("to.device", "self", "dtype", convert, Moves::none, folded_conversion),
      aten("to.other", "self other", "", convert_to_other),
      aten("type_as", "self other", "", convert_to_other),
      aten("copy", "self src", "", copy_op),
      aten("_assert_tensor_metadata", "a", "size stride dtype", assert_metadata),
  };
  return records;
}

}  // namespace lathe::pt2
