#pragma once

#include <catch2/catch.hpp>

#include <functional>
#include <string>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::test {

/// A pass that is tested by the text of its results, for graphs with one signature.
struct PassText {
  std::function<ir::Graph(const ir::Graph&)> pass;
  std::string signature;  ///< "graph @g(input %x: f64[N]) {\n"
  DimBindings dims;       ///< sizes for running the graphs
  double tolerance;

  /// Parses a graph from the lines of its body.
  ir::Graph parse(const std::string& lines) const { return ir::parse_graph(signature + lines + "}\n", "t"); }

  /// Checks that the pass turns `before` into `after`, and that both compute the same.
  void becomes(const std::string& before, const std::string& after) const {
    const auto text = [](const ir::Graph& graph) { return ir::print(graph, {.locations = false}); };
    const ir::Graph from = parse(before), to = pass(from);
    CHECK(text(to) == text(parse(after)));
    const Tensors arguments = random_arguments(from, dims);
    const Tensors expected = ir::interpret(from, arguments), found = ir::interpret(to, arguments);
    for (const auto& [name, value] : expected) CHECK(error_of(found.at(name), value) <= tolerance);
  }

  void stays(const std::string& lines) const { becomes(lines, lines); }
};

}  // namespace lathe::test
