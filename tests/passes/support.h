#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/tensor/graph.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/tensors/compare_tensors.h"
#include "tests/support/tensors/distance.h"

/// Shared code of the pass tests.
namespace lathe::ir::test {

/// Parses IR text and verifies it.
Graph parse(std::string_view text);
/// Returns the text of a graph without locations and column alignment.
std::string text(const Graph& graph);

using lathe::test::random_arguments;

/// Returns what a pass changed, a line per difference (ir/tensor/diff/graph_diff.h), without locations.
std::string changes(const Graph& before, const Graph& after);

/// Checks that both graphs verify and compute the same outputs and updates within `tolerance`, in f64.
void check_same_meaning(const Graph& before, const Graph& after, const Tensors& arguments, double tolerance = 1e-12);

/// Returns the text of the UserError that `action` throws; "no error" if it throws none.
std::string error_text(const std::function<void()>& action);

/// Returns the central difference of `output` (a scalar, or its sum weighted by `weights`) at each element of an
/// argument.
HostTensor finite_difference(const Graph& graph, const Tensors& arguments, const std::string& output,
                             const std::string& wrt, const HostTensor* weights = nullptr, double eps = 1e-6);

/// Checks every output "grad.<name>" of `with_gradients` against finite differences of `output` in `forward`.
void check_gradients(const Graph& forward, const Graph& with_gradients, const Tensors& arguments,
                     const std::string& output);

/// Graphs that use many ops, with sizes for their dims.
struct Specimen {
  std::string_view name;
  std::string_view text;
  DimBindings dims;
};
const std::vector<Specimen>& specimens();

}  // namespace lathe::ir::test
