#pragma once

#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/ops/spatial/conv_ops.h"
#include "models/import/op_table.h"
#include "models/import/ops/tensor_functions.h"
#include "models/import/pt2/archive/program_tensors.h"

/// Functions that several groups of ATen ops share.
namespace lathe::pt2 {

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
using importing::tiled;
using importing::Value;
using importing::widened;
using importing::Xor;

using Build = Results (*)(const OpCall& call);
using Fold = std::optional<DimTensor> (*)(const OpCall& call);

/// Returns the record of an op: its name, the arguments that are operands, and the arguments that are known at
/// import. The format has no versions of ops.
constexpr OpRecord aten(std::string_view name, std::string_view operands, std::string_view attributes, Build build,
                        Moves moves = Moves::none, Fold fold = nullptr) {
  return {name, 1, 1, attributes, build, moves, fold, operands};
}

/// Returns the dtype of an operation on operands by PyTorch's rules: tensors with dims come before those without, and
/// those before numbers, unless a later one is of a higher kind (bool, integer, float, complex).
DType promoted(const OpCall& call, std::initializer_list<std::size_t> operands);
DType promoted(const OpCall& call, std::span<const std::size_t> operands);

/// Returns all operands in the dtype of an operation on them.
std::vector<Tensor> in_common_dtype(const OpCall& call);

/// Returns the float dtype that a function of integers computes in; a float dtype stays.
inline DType float_of(DType dtype) { return is_float(dtype) || is_complex(dtype) ? dtype : f32; }

/// Returns operand 0 as floats.
inline Tensor float_operand(const OpCall& call) { return call.tensor(0).to(float_of(call.dtype(0))); }

/// Returns an operand in a dtype. Numbers are not rounded to a dtype of their own before.
Tensor operand_as(const OpCall& call, std::size_t i, DType dtype);

/// Returns the number of a constant operand of one element; nothing for other operands.
std::optional<Number> number_of(const OpCall& call, std::size_t i);

/// Returns a number argument that is written as an integer or as a float.
double real_argument(const OpCall& call, std::string_view name, double fallback);

/// Returns the dtype of the argument `dtype`, or the fallback.
DType dtype_argument(const OpCall& call, DType fallback);

/// Returns the axes in an argument, from the front: an integer, or a list of them. None and an empty list are all
/// axes.
Ints axes_argument(const OpCall& call, std::string_view name, int rank);

/// Returns the axis in the argument `dim`, from the front.
int axis_argument(const OpCall& call, int rank, std::string_view name = "dim");
int axis_argument(const OpCall& call, int rank, std::int64_t fallback);

/// Returns the numbers in an argument for spatial dims: one for all, or a list. An empty list is the fallback.
PerDim per_dim_argument(const OpCall& call, std::string_view name, std::int64_t fallback);

/// Makes sizes of inputs multiples if the strides of windows over the last `spatial` dims of x do not divide them:
/// see importing::require_multiple().
void require_multiples(const OpCall& call, const Tensor& x, int spatial, const PerDim& stride);

/// Returns an operand, or an empty tensor if it is not given.
inline Tensor optional_tensor(const OpCall& call, std::size_t i) { return call.has(i) ? call.tensor(i) : Tensor(); }

/// Returns the name of the op that computes a tensor, and its first operand.
std::string_view op_name(const Tensor& x);
Tensor operand_of(const Tensor& x);

/// Returns all elements in one dim, in row-major order.
Tensor as_vector(const Tensor& x);

/// Returns the order of dims that undoes a permutation.
Ints inverse_order(const Ints& order);

/// Returns whether elements are not 0.
Tensor truth(const Tensor& x);

}  // namespace lathe::pt2
