#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

/// What the named dims of a graph are in one run.
namespace lathe::ir {

/// What a caller hands over, by argument name.
struct ArgumentShape {
  DType dtype;
  std::vector<std::int64_t> sizes;
};

/// Works out every unknown dim from the arguments' sizes, starting from `given`. A dim such as 2*n_seq + 1 gives
/// n_seq where nothing else does. UserErrors, each naming the argument:
///   [argument_missing], [argument_unknown], [argument_dtype], [argument_rank],
///   [argument_shape] a size differs from the number in the signature,
///   [dim_conflict]   two sizes disagree on a dim; both are named,
///   [dim_unbound]    no argument tells the size of a dim.
/// Then evaluates every DimCheck of the graph (see check_dims).
DimBindings bind_dims(const Graph& graph, const std::map<std::string, ArgumentShape>& arguments,
                      const DimBindings& given = {});

/// The unknown dims of a graph that have no size yet, by name.
std::vector<std::string> unbound_dims(const Graph& graph, const DimBindings& bindings);

/// The dims that the sizes of the arguments do not determine, by name: the caller of a run gives them. Of x: f32[B*T]
/// these are B and T, one of which is enough.
std::vector<std::string> dims_without_argument(const Graph& graph);

/// Throws a UserError with the check's label, at its line, for the first relation that does not hold.
void check_dims(const Graph& graph, const DimBindings& bindings);

}  // namespace lathe::ir
