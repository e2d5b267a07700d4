#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/tensor/graph.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/support/compare_tensors.h"
#include "tests/support/distance.h"

/// What tests of passes share.
namespace lathe::ir::test {

/// Reads IR text and verifies it.
Graph parse(std::string_view text);
/// The text of a graph without locations and without columns.
std::string text(const Graph& graph);

using lathe::test::random_arguments;

/// Checks that both graphs verify and give the same outputs and updates within `tolerance`, computed in f64.
void check_same_meaning(const Graph& before, const Graph& after, const Tensors& arguments, double tolerance = 1e-12);

/// The text of the UserError that `action` throws; "no error" where it throws none.
std::string error_text(const std::function<void()>& action);

/// The central difference of `output`, a scalar or its sum weighted by `weights`, at each element of an argument.
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
