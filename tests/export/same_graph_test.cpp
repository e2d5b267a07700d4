#include <algorithm>
#include <catch2/catch.hpp>

#include "frontend/initial_values.h"
#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "ir/ops/functional/functional.h"
#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/constants.h"
#include "ir/tensor/interpret/interpreter.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/text/printer.h"
#include "models/export/onnx/exportable_graph.h"
#include "passes/transforms/canonicalize.h"
#include "passes/transforms/constant_fold.h"
#include "passes/transforms/cse.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"
#include "passes/transforms/rebuild.h"
#include "tests/export/support/export_case.h"
#include "tests/export/support/loop_graphs.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/tensors/distance.h"

using namespace lathe;
using namespace lathe::test;

/// The import of an exported graph is the same graph, apart from what ONNX does not have: locations, names of values,
/// display names of numbers, attributes and constants of more digits than their dtype, the order of the parameters,
/// run-time checks of sizes, ranges of several dims or other dtypes, and indices of which none is negative.
namespace {

using MaybeValue = std::optional<ir::Value>;

/// ONNX counts negative indices from the end.
MaybeValue with_negative_indices(const ir::Node& node, std::span<const ir::Value> operands) {
  if (node.op != &ir::ops::gather || operands[1].node().op != &ir::ops::input) return std::nullopt;
  const ir::Value &table = operands[0], &indices = operands[1];
  const auto dim = static_cast<int>(node.attrs.get<std::int64_t>("dim"));
  const Dim size = table.shape()[dim < 0 ? dim + table.rank() : dim].unnamed();
  const ir::Value count = ir::dim_value(table.builder(), size, indices.dtype());
  return ir::gather(table, ir::where(ir::lt(indices, 0), ir::add(indices, count), indices), dim);
}

/// A range of i64 along one dim, which is cast, and repeated along the others.
MaybeValue with_plain_ranges(ir::GraphBuilder& builder, const ir::Node& node) {
  if (node.op != &ir::ops::iota) return std::nullopt;
  const Shape& shape = node.type.shape;
  const auto given = node.attrs.get<std::int64_t>("dim");
  const auto dim = static_cast<int>(given < 0 ? given + shape.rank() : given);
  ir::Value range = ir::cast(ir::iota(builder, {shape[dim]}, 0, i64), node.type.dtype);
  for (int i = 0; i < shape.rank(); ++i)
    if (i != dim) range = ir::unsqueeze(range, i);
  return ir::expand(range, shape);
}

void copy(ir::Rebuilder& to, ir::ValueId id) {
  if (to.has(id)) return;
  for (const ir::ValueId operand : to.from()[id].operands) copy(to, operand);
  to.set(id, to.copy(to.from()[id]));
}

/// Returns the graph with its arguments sorted by name, other nodes in the order of their use, and without checks.
ir::Graph sorted(const ir::Graph& graph) {
  ir::GraphBuilder builder(graph.name);
  ir::Rebuilder to(builder, graph);
  std::vector<ir::ValueId> arguments = graph.arguments();
  std::ranges::sort(arguments, {}, [&](ir::ValueId id) { return graph[id].name; });
  for (const ir::ValueId id : arguments)
    to.set(id, builder.argument(*graph[id].op, graph[id].name, graph[id].type.dtype, graph[id].type.shape));
  for (const ir::Output& output : graph.outputs) copy(to, output.value);
  to.close();
  ir::Graph result = builder.finish();
  result.checks.clear();
  return result;
}

/// Returns the body of a loop with its arguments named by their numbers.
ir::Graph numbered(const ir::Graph& body) {
  ir::GraphBuilder builder(body.name);
  ir::Rebuilder to(builder, body);
  for (const ir::ValueId id : body.arguments()) {
    const std::string name = std::to_string(builder.graph().arguments().size());
    to.set(id, builder.argument(*body[id].op, name, body[id].type.dtype, body[id].type.shape));
  }
  for (const ir::Output& output : body.outputs) copy(to, output.value);
  for (const ir::Update& update : body.updates) copy(to, update.value);
  to.close();
  ir::Graph result = builder.finish();
  result.checks.clear();
  return result;
}

ir::Graph simplified(const ir::Graph& graph, bool is_original) {
  const auto rounded = [&](ir::GraphBuilder& builder, const ir::Node& node,
                           std::span<const ir::Value> operands) -> MaybeValue {
    if (node.op == &ir::ops::constant)
      return ir::literal(builder, node.type.shape, ir::constant_values(node), node.type.dtype);
    if (const MaybeValue range = with_plain_ranges(builder, node)) return range;
    return is_original ? with_negative_indices(node, operands) : std::nullopt;
  };
  return ir::dce(ir::cse(ir::constant_fold(ir::canonicalize(ir::rebuild(ir::expand(graph), rounded)))));
}

ir::Graph normal_form(const ir::Graph& graph, bool is_original) {
  const auto body = [&](const ir::Graph& each) { return numbered(simplified(each, is_original)); };
  return sorted(simplified(ir::on_bodies(graph, body), is_original));
}

void check_same(const ir::Graph& graph, const Parameters& parameters, std::int64_t opset) {
  CAPTURE(graph.name, opset);
  const importing::ImportedGraph imported = importing::import_graph(exported(graph, parameters, {.opset = opset}));
  // An attention in steps is exported as one op.
  const ir::Graph got = normal_form(imported.graph.finish(), false),
                  wanted = normal_form(onnx::exportable_graph(graph, opset), true);
  const auto difference = ir::difference(got, wanted, {.names = false});
  INFO(difference.value_or("") << '\n' << ir::print(got) << ir::print(wanted));
  CHECK_FALSE(difference);
}

void check_same(const Graph& model, const ir::Graph& graph, std::int64_t opset) {
  check_same(graph, Parameters(initial_values(graph, model.initializers(), 1)), opset);
}

/// Checks that the import of a language model gives the same logits.
void check_values(const Graph& model, const ir::Graph& graph, std::int64_t opset) {
  const Parameters parameters(initial_values(graph, model.initializers(), 1));
  HostTensor tokens(i64, {2, 5});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, 7 * i % 31);
  const Tensors inputs{{"tokens", tokens}};
  const importing::ImportedGraph imported = importing::import_graph(exported(graph, parameters, {.opset = opset}));
  const ir::Graph got = ir::dce(imported.graph.finish());
  const auto logits = [&](const ir::Graph& from) {
    return ir::interpret(from, arguments_of(from, parameters, inputs)).at("logits");
  };
  CHECK(ir::print(got).find("rope") != std::string::npos);
  CHECK(ir::test::distance(logits(got), logits(graph)) <= 1e-6);
}

}  // namespace

TEST_CASE("same graph: models are imported as they were exported") {
  const Dim B("B"), T("T"), S("S");
  for (const std::int64_t opset : {18, 23}) {
    Graph gpt("gpt"), llama("llama"), transformer("transformer");
    auto config = small_gpt();
    config.dropout = 0;
    gpt.output("logits", models::Gpt(gpt, config).logits(gpt.input("tokens", i64, {B, T})));
    check_same(gpt, gpt.finish(), opset);
    llama.output("logits", models::Llama(llama, small_llama()).logits(llama.input("tokens", i64, {B, T})));
    // The tables of RotaryEmbedding have one half, for each sequence.
    if (opset < 23) check_same(llama, llama.finish(), opset);
    if (opset == 23) check_values(llama, llama.finish(), opset);
    auto two = small_encoder_decoder();
    two.dropout = 0;
    transformer.output("logits",
                       models::EncoderDecoder(transformer, two)
                           .logits(transformer.input("src", i64, {B, S}), transformer.input("tgt", i64, {B, T})));
    check_same(transformer, transformer.finish(), opset);
  }
}

TEST_CASE("same graph: loops are imported as they were exported") {
  for (const LoopGraph& each : loop_graphs(f32)) {
    // The others have sums, which are exported with a dim of size 1, or loops that get a sequence.
    if (each.name != "a loop" && each.name != "a loop in reverse") continue;
    CAPTURE(each.name);
    const auto [parameters, inputs] = divided(each.graph, each.arguments);
    check_same(each.graph, parameters, 18);
  }
}
