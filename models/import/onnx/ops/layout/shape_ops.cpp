#include <fmt/core.h>

#include <algorithm>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/tensor_data.h"

/// Ops on shapes and dtypes.
namespace lathe::onnx {

namespace {

/// The sizes of dims [start, end), which are known at import.
Results shape_op(const OpCall& call) {
  const Shape shape = call.operand(0).shape();
  const auto limited = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + shape.rank() : at, 0, shape.rank());
  };
  const std::int64_t start = limited(call.integer("start", 0)), end = limited(call.integer("end", shape.rank()));
  DimTensor sizes{i64, {std::max<std::int64_t>(end - start, 0)}, {}};
  for (std::int64_t i = start; i < end; ++i) sizes.elements.push_back(shape[static_cast<int>(i)].unnamed());
  return {Value(std::move(sizes))};
}

Results size_op(const OpCall& call) {
  return {Value(DimTensor{i64, {}, {call.operand(0).shape().numel().unnamed()}})};
}

Results identity(const OpCall& call) { return {call.operand(0)}; }

/// The dtype as an attribute. Rounding modes and saturation only concern 8-bit floats.
Results cast_op(const OpCall& call) {
  call.ignore({"saturate", "round_mode"});
  return {call.tensor(0).to(dtype_of(call.integer("to"), call.node().location.place() + ": the result"))};
}

Results cast_like(const OpCall& call) {
  call.ignore({"saturate", "round_mode"});
  return {call.tensor(0).to(call.dtype(1))};
}

/// Reinterprets the bits. Lathe has no op for it; bytes are the only dtypes of one width that casts wrap.
Results bit_cast(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const DType from = x.dtype(), to = dtype_of(call.integer("to"), call.node().location.place() + ": the result");
  if (from == to) return {x};
  if ((!is_byte(from) && from != boolean) || !is_byte(to))
    call.fail(fmt::format("the bits of {} as {} are not supported", name(from), name(to)));
  return {x.to(i32).to(to)};
}

std::optional<DimTensor> folded_cast(const OpCall& call, DType dtype) {
  call.ignore({"saturate", "round_mode"});
  DimTensor dims = *call.operand(0).dims();
  if (dtype != i64 && dtype != i32) return std::nullopt;
  dims.dtype = dtype;
  return dims;
}
std::optional<DimTensor> folded_cast_to(const OpCall& call) {
  return folded_cast(call, dtype_of(call.integer("to"), call.node().location.place() + ": the result"));
}
std::optional<DimTensor> folded_cast_like(const OpCall& call) { return folded_cast(call, call.dtype(1)); }

/// Returns operands at inference unchanged. The mask is all true.
Results dropout_op(const OpCall& call) {
  call.ignore({"seed", "ratio"});
  if (call.has(2)) {
    const HostTensor& training = call.numbers(2, "training_mode");
    const bool keeps_all =
        call.has(1) && call.numbers(1, "ratio").numel() == 1 && call.numbers(1, "ratio").item() == 0;
    if ((training.numel() != 1 || training.get_int(0) != 0) && !keeps_all)
      call.fail("training_mode is true", "import_unsupported", "export the model for inference");
  }
  const Value& x = call.operand(0);
  if (!call.reads(1)) return {x};
  return {x, call.graph().ones(x.shape(), boolean)};
}

}  // namespace

std::span<const OpRecord> shape_ops() {
  static constexpr OpRecord records[] = {
      {"Shape", 1, 14, "", shape_op},
      {"Shape", 15, latest, "start end", shape_op},
      {"Size", 1, latest, "", size_op},
      {"Identity", 1, latest, "", identity},
      {"Cast", 6, latest, "to saturate round_mode", cast_op, Moves::none, folded_cast_to},
      {"CastLike", 15, latest, "saturate round_mode", cast_like, Moves::none, folded_cast_like},
      {"BitCast", 26, latest, "to", bit_cast},
      {"Dropout", 7, 11, "ratio seed", dropout_op},
      {"Dropout", 12, latest, "seed", dropout_op},
  };
  return records;
}

}  // namespace lathe::onnx
