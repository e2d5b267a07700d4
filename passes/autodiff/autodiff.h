#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor/builder.h"

/// Reverse-mode differentiation, graph to graph. A gradient is ordinary nodes in the same builder, at the location of
/// the op it belongs to ("gradient of mha.cpp:14"): it can be printed, fused, and differentiated again.
///
/// Rules. Only nodes between the outputs and `wrt` get a gradient. Uses of one value add up, the last use first.
/// Broadcast dims are summed away. Composites without a rule of their own are expanded on the fly; the expansion is
/// the one that passes/transforms/expand.h makes, so both become the same nodes. No gradient flows through integers,
/// booleans, stop_gradient and other ops that are NotDifferentiable. Complex values follow PyTorch: the gradient of a
/// real L at z is dL/dRe(z) + i dL/dIm(z). Equal pure ops are one node in a builder, so "with respect to an
/// intermediate value" counts every use of that node.
namespace lathe::ir {

/// An output to differentiate and its cotangent. Without one the output must be a real scalar, and it is 1.
struct Seed {
  Value output;
  std::optional<Value> cotangent = {};
};

/// What to do for a `wrt` that the outputs do not depend on: say so, or give zeros.
enum class Unused { error, zeros };

struct Gradients {
  std::vector<Value> values;  ///< one for each of `wrt`, with its dtype and shape
  std::vector<bool> reached;  ///< false: no gradient arrives, the value is zeros
  const Value& operator[](std::size_t i) const { return values[i]; }
};

/// d(sum over outputs of <output, cotangent>) / d(wrt). Throws UserError
///   [grad_output_dtype]     an output is an integer or a boolean
///   [grad_scalar]           an output without a cotangent is not a real scalar
///   [grad_cotangent]        a cotangent has not the dtype and shape of its output
///   [grad_wrt_dtype]        a wrt is an integer or a boolean
///   [grad_wrt_unused]       no output depends on a wrt, or only through ops without a gradient (Unused::error)
Gradients gradients(GraphBuilder& builder, std::span<const Seed> outputs, std::span<const Value> wrt,
                    Unused unused = Unused::error);
Gradients gradients(GraphBuilder& builder, const Value& output, std::optional<Value> cotangent,
                    std::span<const Value> wrt, Unused unused = Unused::error);

/// What `differentiate` should make of a graph.
struct GradientRequest {
  struct OutputSeed {
    std::string output;     ///< the name of an output
    std::string cotangent;  ///< the name of the input to add for it; empty: 1 for a scalar, else "cot.<output>"
  };
  std::vector<OutputSeed> outputs = {};  ///< empty: every float or complex output
  std::vector<std::string> wrt = {};  ///< arguments, or named values; empty: every parameter, or where there is none
                                      ///< every float or complex input
  bool keep_outputs = true;           ///< the outputs and updates of the graph stay
  Unused unused = Unused::error;
};

/// The graph with an output "grad.<name>" for each of `wrt`. Throws as `gradients` does, and [grad_unknown_name],
/// [argument_name], [output_name].
Graph differentiate(const Graph& graph, const GradientRequest& request);

}  // namespace lathe::ir
