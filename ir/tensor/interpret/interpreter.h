#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

/// Reference interpreter of the tensor IR, for comparison with passes and backends.
///
/// Floats are computed in f64, integers exactly (wrapping to their width), complex numbers as pairs of f64; sums are
/// in row-major order. With `round`, each result is then rounded to its dtype, so that each op of an f32 graph is
/// correctly rounded. Composite ops are evaluated by their expansion, including rounding of the intermediate steps.
namespace lathe::ir {

struct InterpretOptions {
  /// Round each value to its dtype. Otherwise floats stay f64 (and complex c128) throughout, including results.
  bool round = true;
  /// Known dims, in addition to those determined by the arguments' sizes.
  DimBindings dims = {};
  /// Called with each value computed from operands, before it is rounded: floats as f64, complex as c128. It may
  /// change the value. For a composite, it is called with the values of the ops in its expansion.
  std::function<void(const Node&, std::span<const HostTensor* const> operands, HostTensor&)> computed = {};
};

/// Runs a graph. Returns its outputs by name, and every updated state or parameter by its argument name [result_name
/// if the two clash]. Throws the UserErrors of bind_dims (missing or wrong arguments, contradicting dims), of
/// run-time dim checks, and [index_range] for gather, scatter_add and update_rows.
Tensors interpret(const Graph& graph, const Tensors& arguments, const InterpretOptions& options = {});

/// Returns the values of any nodes, in the requested order.
std::vector<HostTensor> interpret_values(const Graph& graph, const Tensors& arguments,
                                         std::span<const ValueId> values, const InterpretOptions& options = {});

/// Returns every value with a user-given name, by that name (the last of equal names), including outputs and updates.
Tensors interpret_named(const Graph& graph, const Tensors& arguments, const InterpretOptions& options = {});

}  // namespace lathe::ir
