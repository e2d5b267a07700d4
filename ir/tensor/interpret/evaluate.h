#pragma once

#include <span>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/walk.h"

/// The parts of the interpreter: one function for each kind of meaning. Tensors are held in their evaluation
/// dtype: floats as f64, integers as i64, complex numbers as c128, boolean as it is; so is the result, not yet
/// rounded to the node's dtype.
namespace lathe::ir {

/// The dtype in which the interpreter holds values of `dtype`.
DType evaluation_dtype(DType dtype);

using OperandTensors = std::span<const HostTensor* const>;

HostTensor evaluate_elementwise(const Node& node, const Elementwise& meaning, OperandTensors operands,
                                const Sizes& sizes);
HostTensor evaluate_view(const Graph& graph, const Node& node, const View& meaning, const HostTensor& operand,
                         const Sizes& sizes, const DimBindings& bindings);
HostTensor evaluate_reduce(const Node& node, const Reduce& meaning, const HostTensor& operand, const Sizes& sizes);
HostTensor evaluate_contraction(const Node& node, const Contraction& meaning, const HostTensor& lhs,
                                const HostTensor& rhs, const Sizes& sizes);

/// Any op on operands in their evaluation dtypes, of the graph that it stands in; composites by their expansion.
HostTensor evaluate_node(const Graph& graph, const Node& node, OperandTensors operands, const DimBindings& bindings,
                         const InterpretOptions& options);
/// What the interpreter keeps of a value: in its evaluation dtype, and rounded where asked or where the dtype is an
/// integer's.
HostTensor to_evaluation_dtype(HostTensor value, DType dtype, bool round);
/// A value as the caller of the interpreter sees it: in its dtype, or in its evaluation dtype where nothing was
/// rounded.
HostTensor to_result(HostTensor value, DType dtype, bool round);
/// For each node, the last one that reads it; its own index where none does; -1 where no wanted one depends on it. A
/// wanted value lives to the end.
std::vector<std::int32_t> last_readers(const Graph& graph, std::span<const ValueId> wanted);

/// One scalar operation on integers (they wrap; x / 0 and x rem 0 are 0) and on complex numbers.
std::int64_t integer_scalar(ScalarOp op, std::span<const std::int64_t> x);
std::complex<double> complex_scalar(ScalarOp op, std::span<const std::complex<double>> x);

}  // namespace lathe::ir
