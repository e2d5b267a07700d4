#include <catch2/catch.hpp>
#include <limits>

#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/text/printer.h"
#include "tests/support/graphs/same_graph.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::ir::test::op;

namespace {

/// Checks that print -> parse gives the same graph, and that it prints the same text.
void check_round_trip(const Graph& graph) {
  const std::string text = print(graph);
  INFO(text);
  const Graph again = parse_graph(text, "again.lathe");
  lathe::test::check_same_graph(graph, again, {.locations = true, .names = true});
  CHECK(print(again) == text);
  const std::string no_locations = print(graph, {.locations = false});
  CHECK(print(parse_graph(no_locations, "again.lathe"), {.locations = false}) == no_locations);
}

}  // namespace

TEST_CASE("a hand-written program round-trips", "[roundtrip]") {
  check_round_trip(parse_graph(ir::test::attention_text));
}

TEST_CASE("every sample of every op round-trips", "[roundtrip]") {
  for (const Op* record : all_ops()) {
    if (record->as<Argument>()) continue;
    int number = 0;
    for (const Sample& sample : record->samples.value()) {
      CAPTURE(record->name.value, number);
      GraphBuilder b(record->name.value);
      const GraphBuilder::At at(b, Location("samples.cpp", ++number, "ops"));
      std::vector<Value> operands;
      for (const SampleOperand& operand : sample.operands) {
        std::vector<Dim> dims(operand.sizes.begin(), operand.sizes.end());
        operands.push_back(
            b.argument(op("input"), "x" + std::to_string(operands.size()), operand.dtype, Shape(dims)));
      }
      b.output("y", b.add(*record, operands, sample.attrs));
      check_round_trip(b.finish());
    }
  }
}

TEST_CASE("run-time checks keep every field and their order", "[roundtrip]") {
  GraphBuilder b("checked");
  const Dim n("n"), m("m"), k("k");
  const GraphBuilder::At at(b, Location("model.cpp", 3));
  const Value x = b.argument(op("input"), "x", f32, {Dim("B"), n});
  const Value y = b.argument(op("input"), "y", f32, {m, k});
  b.add_checks(
      std::vector<DimCheck>{{n + 1, Dim("h", 8), DimCheck::Relation::at_most, Location("a b.cpp", 7).as_gradient(),
                             "odd op", "odd label", "a \"quoted\"\nmessage"}});
  b.output("z", b.add(op("matmul"), {x, y}));
  const Graph graph = b.finish();
  REQUIRE(graph.checks.size() == 2);
  check_round_trip(graph);
}

TEST_CASE("odd names, unknown locations, NaN and infinities survive", "[roundtrip]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  GraphBuilder b("a graph\"s name");
  const Value x = b.argument(op("input"), "7", f64, {Dim("alias", Dim("n")), Dim("T", Dim("n") * Dim("B") + 1)});
  const Value c =
      b.add(op("constant"), {},
            {{"dtype", f64}, {"shape", Shape{4}}, {"values", std::vector<double>{inf, -inf, std::nan(""), -0.0}}});
  const GraphBuilder::At at(b, Location().as_gradient());
  const Value y = b.add(op("exp"), {x});
  b.set_name(y, "naïve\tname");
  b.output("out \"1\"", y);
  b.output("c", c);
  check_round_trip(b.finish());
}

TEST_CASE("arguments may be mixed with other values", "[roundtrip]") {
  GraphBuilder b("mixed");
  const Value x = b.argument(op("input"), "x", f32, {Dim("n")});
  const Value y = b.add(op("exp"), {x});
  const Value w = b.argument(op("parameter"), "w", f32, {Dim("n")});
  const Value z = b.add(op("mul"), {y, w});
  b.output("z", z);
  b.update(w, z);
  check_round_trip(b.finish());
}

TEST_CASE("dims that differ only in name stay separate", "[roundtrip]") {
  GraphBuilder b("names");
  const Value x = b.argument(op("input"), "x", f32, {8});
  b.output("a", b.add(op("view"), {x}, {{"shape", Shape{Dim("h", 8), 1}}}));
  b.output("b", b.add(op("view"), {x}, {{"shape", Shape{8, 1}}}));
  const Graph graph = b.finish();
  CHECK(graph.size() == 3);
  check_round_trip(graph);
}

TEST_CASE("comparison reports the difference", "[compare]") {
  const auto graph = [](std::string_view body) {
    return parse_graph("graph @g(input %x: f32[n], input %y: f32[n]) {\n" + std::string(body) + "}\n");
  };
  const Graph base = graph("%1 = exp %x\n%2 = sub %1, %y\noutput \"z\" %2\n");
  CHECK(structurally_equal(base, base));
  const auto what = [&](std::string_view body) { return difference(base, graph(body)).value_or("equal"); };
  CHECK(what("%e = exp %x\n%d = sub %e, %y\noutput \"z\" %d\n").find("the name differs:") == 0);
  CHECK(what("%1 = log %x\n%2 = sub %1, %y\noutput \"z\" %2\n").find("the op differs:") == 0);
  CHECK(what("%1 = exp %x\n%2 = sub %y, %1\noutput \"z\" %2\n").find("the operands differ:") == 0);
  CHECK(what("%1 = exp %x\n%2 = sub %1, %y\noutput \"w\" %2\n").find("output 0") == 0);
  CHECK(what("%1 = exp %x\n%2 = sub %1, %y\n%3 = exp %2\noutput \"z\" %2\n").find("4 values against 5") == 0);
  CHECK(what("%1 = exp %x\n\n\n%2 = sub %1, %y\noutput \"z\" %2\n") == "equal");
}
