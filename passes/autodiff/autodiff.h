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

/// An output to differentiate and its cotangent. Without a cotangent the output must be a real scalar, and the
/// cotangent is 1.
struct Seed {
  Value output;
  std::optional<Value> cotangent = {};
};

/// How to treat a `wrt` that the outputs do not depend on: throw an error, or return zeros.
enum class Unused { error, zeros };

struct Gradients {
  std::vector<Value> values;  ///< one per `wrt`, with its dtype and shape
  std::vector<bool> reached;  ///< false: no gradient arrives, and the value is zeros
  const Value& operator[](std::size_t i) const { return values[i]; }
};

/// Returns d(sum over outputs of <output, cotangent>) / d(wrt). Throws UserError
///   [grad_output_dtype]     an output is an integer or a boolean
///   [grad_scalar]           an output without a cotangent is not a real scalar
///   [grad_cotangent]        a cotangent does not have the dtype and shape of its output
///   [grad_wrt_dtype]        a wrt is an integer or a boolean
///   [grad_wrt_unused]       no output depends on a wrt, or only through ops without a gradient (Unused::error)
Gradients gradients(GraphBuilder& builder, std::span<const Seed> outputs, std::span<const Value> wrt,
                    Unused unused = Unused::error);
Gradients gradients(GraphBuilder& builder, const Value& output, std::optional<Value> cotangent,
                    std::span<const Value> wrt, Unused unused = Unused::error);

/// Options of `differentiate`.
struct GradientRequest {
  struct OutputSeed {
    std::string output;     ///< the name of an output
    std::string cotangent;  ///< the name of the input to add for it; empty: 1 for a scalar, else "cot.<output>"
    bool operator==(const OutputSeed&) const = default;
  };
  std::vector<OutputSeed> outputs = {};  ///< empty: every float or complex output
  /// Arguments or named values. Empty: every parameter, or every float or complex input if there are no parameters.
  std::vector<std::string> wrt = {};
  bool keep_outputs = true;  ///< keep the outputs and updates of the graph
  Unused unused = Unused::error;
};

/// Returns the graph with an output "grad.<name>" for each of `wrt`. Throws the errors of `gradients`, and
/// [grad_unknown_name], [argument_name], [output_name].
Graph differentiate(const Graph& graph, const GradientRequest& request);

}  // namespace lathe::ir
