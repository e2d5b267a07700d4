#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "tests/export/support/export_case.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;

namespace {

/// Returns the text of the error of an export. Checks its label.
std::string error_of(const ir::Graph& graph, const std::string& label, const Parameters& parameters = {},
                     const exporting::OnnxOptions& options = {}) {
  const std::filesystem::path file = new_file("model.onnx");
  try {
    exporting::write_onnx(graph, parameters, file, options);
  } catch (const UserError& error) {
    CHECK(error.label() == label);
    CHECK(std::filesystem::is_empty(file.parent_path()));
    return error.what();
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("errors: one error lists all ops and updates that ONNX does not have, with their lines") {
  const ir::Graph graph = ir::parse_graph(
      "graph @step(\n"
      "  input %x: f64[3, 3],\n"
      "  state %rng: i64[2],\n"
      "  state %count: i64[2]\n"
      ") {\n"
      "  %1 = cholesky %x : f64[3, 3] loc(\"a.cpp\":4)\n"
      "  %2 = dropout %1, %rng {p=0.5, stream=0} : f64[3, 3] loc(\"a.cpp\":5)\n"
      "  %3 = cholesky %2 : f64[3, 3] loc(\"a.cpp\":6)\n"
      "  %4 = add %rng, %rng : i64[2] loc(\"a.cpp\":7)\n"
      "  output \"y\" %3\n"
      "  update %count <- %4\n"
      "}\n");
  const std::string text = error_of(graph, "export_unsupported");
  CHECK_THAT(text, Contains("the graph @step has 3 parts that ONNX does not have"));
  CHECK_THAT(text, Contains("the op cholesky (ONNX has no decompositions of matrices): a.cpp:4, a.cpp:6"));
  CHECK_THAT(text, Contains("the op dropout (") && Contains("a.cpp:5"));
  CHECK_THAT(text, Contains("updated in place") && Contains("%count"));
}

TEST_CASE("errors: parameters need values of their types") {
  Graph g("m");
  const Tensor x = g.input("x", f32, {2}), w = g.parameter("w", f32, {2});
  g.output("y", x * w + g.state("s", f32, {2}));
  const ir::Graph graph = g.finish();
  CHECK_THAT(error_of(graph, "export_values"), Contains("w, s of @m have no values"));
  const Parameters other(Tensors{{"w", HostTensor(f32, {3})}, {"s", HostTensor(f32, {2})}});
  CHECK_THAT(error_of(graph, "export_values", other), Contains("the value of w is f32[3], and the graph has f32[2]"));
  const Parameters wide(Tensors{{"w", HostTensor(f64, {2})}, {"s", HostTensor(f32, {2})}});
  CHECK_THAT(error_of(graph, "export_values", wide), Contains("the value of w is f64[2]"));
  Graph h("m");
  h.output("y", h.parameter("w", f32, {2 * Dim("n")}) * 2.0);
  CHECK_THAT(error_of(h.finish(), "export_values", other), Contains("the value of w is f32[3]"));
}

TEST_CASE("errors: a size must follow from the size of an input") {
  Graph g("m");
  g.output("y", g.arange(Dim("count"), i64));
  CHECK_THAT(error_of(g.finish(), "export_size"), Contains("the size count does not follow"));
  Graph h("m");
  const Tensor x = h.input("x", f32, {Dim("a") * Dim("b")});
  h.output("y", x.reshape({Dim("a"), Dim("b")}));
  CHECK_THAT(error_of(h.finish(), "export_size"), Contains("the size a does not follow"));
}

TEST_CASE("errors: an output with the name of an input, and an unknown opset") {
  Graph g("m");
  g.output("x", g.input("x", f32, {2}) * 2.0);
  const ir::Graph graph = g.finish();
  CHECK_THAT(error_of(graph, "export_name"), Contains("the output x of @m has the name of an argument"));
  CHECK_THAT(error_of(graph, "export_opset", {}, {.opset = 17}), Contains("opset 17 is not supported"));
}
