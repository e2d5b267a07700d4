#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

/// Binds the named dims of a graph for one run.
namespace lathe::ir {

/// Dtype and sizes of an argument given by the caller.
struct ArgumentShape {
  DType dtype;
  std::vector<std::int64_t> sizes;
};

/// Computes every unknown dim from the arguments' sizes, starting from `given`. A dim such as 2*n_seq + 1 determines
/// n_seq if nothing else does. Throws UserErrors that name the argument:
///   [argument_missing], [argument_unknown], [argument_dtype], [argument_rank],
///   [argument_shape] a size differs from the number in the signature,
///   [dim_conflict]   two sizes disagree on a dim; both are named,
///   [dim_unbound]    no argument determines a dim.
/// Then evaluates every DimCheck of the graph (see check_dims).
DimBindings bind_dims(const Graph& graph, const std::map<std::string, ArgumentShape>& arguments,
                      const DimBindings& given = {});

/// Returns the names of the dims of a graph that `bindings` lacks.
std::vector<std::string> unbound_dims(const Graph& graph, const DimBindings& bindings);

/// Returns the names of the dims that the arguments' sizes do not determine; the caller of a run must bind them. For
/// x: f32[B*T] these are B and T; binding one of them suffices.
std::vector<std::string> dims_without_argument(const Graph& graph);

/// Throws a UserError with the check's label, at its line, for the first violated check.
void check_dims(const Graph& graph, const DimBindings& bindings);

}  // namespace lathe::ir
