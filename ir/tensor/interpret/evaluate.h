#pragma once

#include <complex>
#include <span>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/analysis/walk.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"

/// Building blocks of the interpreter: one function per kind of meaning. Tensors are held in their evaluation dtype:
/// floats as f64, integers as i64, complex numbers as c128, boolean unchanged. Results are too, before rounding to
/// the node's dtype.
namespace lathe::ir {

/// Returns the dtype in which the interpreter holds values of `dtype`.
DType evaluation_dtype(DType dtype);

using OperandTensors = std::span<const HostTensor* const>;

HostTensor evaluate_elementwise(const Node& node, const Elementwise& meaning, OperandTensors operands,
                                const Sizes& sizes);
HostTensor evaluate_view(const Graph& graph, const Node& node, const View& meaning, const HostTensor& operand,
                         const Sizes& sizes, const DimBindings& bindings);
HostTensor evaluate_reduce(const Node& node, const Reduce& meaning, const HostTensor& operand, const Sizes& sizes);
HostTensor evaluate_contraction(const Node& node, const Contraction& meaning, const HostTensor& lhs,
                                const HostTensor& rhs, const Sizes& sizes);

/// Evaluates one result of a loop.
HostTensor evaluate_loop(const Node& node, OperandTensors operands, const DimBindings& bindings,
                         const InterpretOptions& options);
/// Evaluates nodes of a graph for values of its arguments, which are in their order.
std::vector<HostTensor> evaluate_graph(const Graph& graph, OperandTensors arguments, std::span<const ValueId> wanted,
                                       const DimBindings& bindings, const InterpretOptions& options);

/// Evaluates any op on operands in their evaluation dtypes; `graph` contains the node. Composites use their
/// expansion.
HostTensor evaluate_node(const Graph& graph, const Node& node, OperandTensors operands, const DimBindings& bindings,
                         const InterpretOptions& options);
/// Converts a value to its evaluation dtype; rounds it to `dtype` first if requested, or if `dtype` is an integer.
HostTensor to_evaluation_dtype(HostTensor value, DType dtype, bool round);
/// Converts a value for the caller of the interpreter: to its dtype, or to its evaluation dtype without rounding.
HostTensor to_result(HostTensor value, DType dtype, bool round);
/// Returns, for each node, the last node that reads it. A node without readers has its own index, and one that no
/// wanted value depends on has -1. A wanted value lives to the end.
NodeMap<std::int32_t> last_readers(const Graph& graph, std::span<const ValueId> wanted);

/// Evaluate a scalar operation on integers (they wrap; x / 0 and x rem 0 are 0; shifts use their
/// width, `bits`) and on complex numbers.
std::int64_t integer_scalar(ScalarOp op, std::span<const std::int64_t> x, int bits = 64);
std::complex<double> complex_scalar(ScalarOp op, std::span<const std::complex<double>> x);

}  // namespace lathe::ir
