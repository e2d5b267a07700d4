#pragma once

#include <cstdint>
#include <optional>

#include "models/import/onnx/check_ops.h"
#include "models/import/op_table.h"
#include "models/import/ops/tensor_functions.h"

/// Functions that several groups of ONNX ops share, and those that all formats share.
namespace lathe::onnx {

using importing::along_axis;
using importing::And;
using importing::axes_from_front;
using importing::axes_of;
using importing::DimTensor;
using importing::from_front;
using importing::Ints;
using importing::Moves;
using importing::OpCall;
using importing::OpRecord;
using importing::Or;
using importing::padded;
using importing::product;
using importing::Results;
using importing::scalar_of;
using importing::tiled;
using importing::Value;
using importing::vector_of;
using importing::widened;
using importing::Xor;

/// The last version of an op whose meaning has not changed since.
inline constexpr std::int64_t latest = newest_opset;

/// Returns the axes of a reduction or a view: of operand `i` if it is given, otherwise of the attribute `axes`;
/// nothing if neither is given.
std::optional<Ints> given_axes(const OpCall& call, std::size_t i, int rank);

/// Returns quantized values: rounds, adds the zero point, and limits to the range of i8 or u8.
Tensor quantized(const Tensor& scaled, const Tensor& zero_point, DType dtype);

}  // namespace lathe::onnx
