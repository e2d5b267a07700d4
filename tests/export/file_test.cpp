#include <catch2/catch.hpp>
#include <fstream>

#include "frontend/dsl.h"
#include "ir/tensor/interpret/interpreter.h"
#include "models/import/onnx/onnx_model.h"
#include "runtime/files/file_io.h"
#include "tests/export/support/export_case.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// x [n, 16] times w [40, 16] transposed, plus b [40]: w has 2,560 bytes, b 160.
ir::Graph small_graph() {
  Graph g("small");
  const Tensor x = g.input("x", f32, {Dim("n"), 16});
  const Tensor weight = g.parameter("fc.weight", f32, {40, 16}), bias = g.parameter("fc.bias", f32, {40});
  g.output("y", linear(x, weight, bias));
  return g.finish();
}

Parameters small_values() {
  HostTensor weight(f32, {40, 16}), bias(f32, {40});
  for (std::int64_t i = 0; i < weight.numel(); ++i) weight.set(i, static_cast<double>(i % 7) - 3);
  for (std::int64_t i = 0; i < bias.numel(); ++i) bias.set(i, static_cast<double>(i));
  return Parameters(Tensors{{"fc.weight", weight}, {"fc.bias", bias}});
}

std::string bytes_of(const std::filesystem::path& file) { return read_file(file, 1 << 20); }

}  // namespace

TEST_CASE("file: names, dims and values are those of the graph") {
  const std::string bytes = bytes_of(exported(small_graph(), small_values()));
  const onnx::ModelProto model = onnx::read_model(std::as_bytes(std::span(bytes)), "model.onnx");
  const onnx::GraphProto& graph = *model.graph;
  CHECK(model.opsets.at(0).version == 18);
  CHECK(model.ir_version == 8);
  CHECK(graph.name == "small");
  CHECK(graph.inputs.at(0).name == "x");
  CHECK(graph.inputs.at(0).shape->at(0).name == "n");
  CHECK(graph.inputs.at(0).shape->at(1).value == 16);
  CHECK(graph.outputs.at(0).name == "y");
  CHECK(graph.outputs.at(0).shape->at(1).value == 40);
  REQUIRE(graph.nodes.size() == 1);
  CHECK(graph.nodes[0].op == "Gemm");
  CHECK(graph.nodes[0].inputs == std::vector<onnx::Text>{"x", "fc.weight", "fc.bias"});
  CHECK(graph.initializers.at(0).name == "fc.weight");
}

TEST_CASE("file: the same graph gives the same bytes") {
  for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
    const auto first = exported(small_graph(), small_values(), {.most_bytes = most}),
               second = exported(small_graph(), small_values(), {.most_bytes = most});
    CHECK(bytes_of(first) == bytes_of(second));
  }
}

TEST_CASE("file: values above the limit are in a second file, except small ones") {
  const auto file = exported(small_graph(), small_values(), {.most_bytes = 1000});
  CHECK(std::filesystem::file_size(file.parent_path() / "model.onnx.data") == 2560);
  CHECK(std::filesystem::file_size(file) < 1000);
  const importing::ImportedGraph imported = importing::import_graph(file);
  for (const char* name : {"fc.weight", "fc.bias"})
    CHECK(imported.parameters.get(name).same_bits(small_values().get(name)));
  // One file is enough below the limit.
  CHECK_FALSE(std::filesystem::exists(exported(small_graph(), small_values(), {.most_bytes = 4000}).parent_path() /
                                      "model.onnx.data"));
}

TEST_CASE("file: an existing file is replaced, and nothing else is written") {
  const std::filesystem::path file = new_file("model.onnx");
  std::ofstream(file) << "old";
  exporting::write_onnx(small_graph(), small_values(), file);
  CHECK(bytes_of(file).size() > 2000);
  CHECK(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}) == 1);
}

TEST_CASE("file: sizes are computed from the shapes of inputs") {
  Graph g("sizes");
  const Dim n("n"), m("m");
  const Tensor x = g.input("x", f32, {n, 2 * m + 1}), y = g.input("y", f32, {3 * n, 4});
  g.output("flat", x.reshape({n * (2 * m + 1)}));
  g.output("wide", y.reshape({n, 12}));
  g.output("ramp", g.arange(m * m + n, i64));
  g.output("end", x.slice(1, m, 2 * m + 1));
  const ir::Graph graph = g.finish();
  HostTensor a(f32, {2, 7}), b(f32, {6, 4});
  for (std::int64_t i = 0; i < a.numel(); ++i) a.set(i, static_cast<double>(i));
  const Tensors inputs{{"x", a}, {"y", b}}, wanted = ir::interpret(graph, inputs);
  const ir::Graph imported = importing::import_graph(exported(graph)).graph.finish();
  CHECK(imported[imported.find_argument("y")].type.shape.to_string() == "[3*n, 4]");
  const Tensors got = ir::interpret(imported, inputs);
  for (const char* name : {"flat", "wide", "ramp", "end"}) CHECK(got.at(name).same_bits(wanted.at(name)));
  CHECK(got.at("ramp").numel() == 11);
}

TEST_CASE("file: an output that is an argument, a constant or another output is a copy") {
  Graph g("copies");
  const Tensor x = g.input("x", f32, {Dim("n")}), y = exp(x);
  g.output("same", x);
  g.output("first", y);
  g.output("second", y);
  g.output("third", log(y));
  g.output("one", g.constant(1, f32));
  const ir::Graph graph = g.finish();
  const Tensors inputs{{"x", HostTensor::of<float>({2}, {1, 2})}}, wanted = ir::interpret(graph, inputs);
  const Tensors got = ir::interpret(importing::import_graph(exported(graph)).graph.finish(), inputs);
  for (const char* name : {"same", "first", "second", "third", "one"}) CHECK(got.at(name).same_bits(wanted.at(name)));
}

TEST_CASE("file: sizes that parameters determine are numbers") {
  Graph g("table");
  const Tensor table = g.parameter("table", f32, {2 * Dim("rows") + 1, 3});
  (void)g.parameter("unused", f32, {Dim("any")});
  g.output("y", table.reshape({(2 * Dim("rows") + 1) * 3}) * 2.0);
  const Parameters values(Tensors{{"table", HostTensor(f32, {5, 3})}});
  const ir::Graph imported = importing::import_graph(exported(g.finish(), values)).graph.finish();
  CHECK(imported[imported.outputs.at(0).value].type.shape.to_string() == "[15]");
}
