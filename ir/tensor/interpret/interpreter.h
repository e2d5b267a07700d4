#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

/// The meaning of the tensor IR, computed plainly: the reference that passes and backends are compared with.
///
/// Floats are computed in f64, integers exactly (they wrap to their width), complex numbers as pairs of f64; sums run
/// in row-major order. With `round` each result is then rounded to its dtype, so that f32 graphs give f32 results of
/// ops that are each correctly rounded. Composite ops mean what their expansion means, rounding of the steps
/// included.
namespace lathe::ir {

struct InterpretOptions {
  /// Round each value to its dtype. Without, floats stay f64 (and complex c128) to the end, results included.
  bool round = true;
  /// Dims that are known besides those that the arguments' sizes tell.
  DimBindings dims = {};
  /// Called with each value that an op has computed from its operands, before it is rounded: floats as f64, complex
  /// as c128. It may change the value. Of a composite, with the values of the ops that it is made of.
  std::function<void(const Node&, std::span<const HostTensor* const> operands, HostTensor&)> computed = {};
};

/// Runs a graph: its outputs by name, and every updated state or parameter by the argument's name [result_name where
/// the two clash]. UserErrors: those of bind_dims (missing or wrong arguments, contradicting dims), the labels of
/// run-time dim checks, and [index_range] for gather, scatter_add and update_rows.
Tensors interpret(const Graph& graph, const Tensors& arguments, const InterpretOptions& options = {});

/// The values of any nodes, in the order asked for.
std::vector<HostTensor> interpret_values(const Graph& graph, const Tensors& arguments,
                                         std::span<const ValueId> values, const InterpretOptions& options = {});

/// Every value that has a name of the user's, by that name (of equal names, the last), outputs and updates included.
Tensors interpret_named(const Graph& graph, const Tensors& arguments, const InterpretOptions& options = {});

}  // namespace lathe::ir
