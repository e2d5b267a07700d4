#include "ir/tensor/text/parser.h"

#include <catch2/catch.hpp>

#include "ir/tensor/text/printer.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

std::string error_of(std::string_view text) {
  return ir::test::error_text([&] { static_cast<void>(parse_graph(text, "m.lathe")); });
}

/// Returns the error of a body over %x: f32[n, h=8] and %y: f32[m], which starts in line 2.
std::string body_error(const std::string& body) {
  return error_of("graph @g(input %x: f32[n, h=8], input %y: f32[m]) {\n" + body + "\n}\n");
}

}  // namespace

TEST_CASE("types are optional, names may replace ids", "[parser]") {
  const Graph graph = parse_graph(R"(
    graph @g(input %x: f32[n, 4]) {   // a comment
      %scores = exp %x                // the user's name
      %7 = transpose %scores {dim0=0, dim1=1}
      output "y" %7
    })");
  CHECK(print(graph, {.locations = false}) ==
        "graph @g(input %x: f32[n, 4]) {\n"
        "  %1 = exp %x                               : f32[n, 4]  name(\"scores\")\n"
        "  %2 = transpose %1 {dim0=0, dim1=1}        : f32[4, n] strided\n"
        "  output \"y\" %2\n"
        "}\n");
  CHECK(graph.nodes[2].loc == Location("<text>", 4));
}

TEST_CASE("grammar errors report place, token and expectation", "[parser]") {
  CHECK(error_of("graph g() {}") ==
        "m.lathe:1:7: expected the graph's name, such as @model, found 'g'\n"
        "    graph g() {}\n"
        "          ^");
  CHECK(error_of("") ==
        "m.lathe:1:1: expected 'graph', found the end of the text\n"
        "  a program reads: graph @name(input %x: f32[n]) { ... }\n    \n    ^");
  CHECK_THAT(error_of("graph @g(output %x: f32[n]) {}"),
             Contains("1:10: expected input, parameter or state, found 'output'"));
  CHECK_THAT(error_of("graph @g(input %1: f32[n]) {}"), Contains("an argument has a name, not a number"));
  CHECK_THAT(error_of("graph @g(input %x: f33[n]) {}"),
             Contains("expected a dtype, found 'f33'\n  the dtypes are f64, f32,"));
  CHECK_THAT(error_of("graph @g(input %x: f32[n] strided) {}"), Contains("an argument is never strided"));
  CHECK_THAT(error_of("graph @g(input %x: f32[n]"), Contains("expected ',' or ')' after an argument, found the end"));
  CHECK_THAT(error_of("graph @g() {} graph @h() {}"), Contains("expected the end of the text"));
  CHECK_THAT(error_of("graph @g() { $ }"), Contains("1:14: unexpected '$'"));
  CHECK_THAT(error_of("graph @g() { \xc3\xa9 }"), Contains("1:14: unexpected byte 0xc3"));
  CHECK_THAT(error_of("graph @g() { output \"x }"), Contains("1:21: this quote does not end on its line"));
  CHECK_THAT(error_of("graph @g() { output \"\\q\" }"), Contains("unknown escape"));
  CHECK_THAT(error_of("graph @g(input %x: f32[2n]) {}"), Contains("a number cannot continue with 'n'"));
  CHECK_THAT(error_of("graph @g(input %x: f32[99999999999999999999]) {}"), Contains("does not fit 64 bits"));
  // f64 rounds it to the lowest i64.
  const std::string low = "graph @g() { %1 = constant {dtype=i64, shape=[], values=[-922337203685477580";
  CHECK_THAT(error_of(low + "9]} output \"y\" %1 }"), Contains("does not fit 64 bits"));
  CHECK(error_of(low + "8]} output \"y\" %1 }") == "no error");
}

TEST_CASE("errors in a body point at the token with a caret", "[parser]") {
  CHECK(body_error("  %1 = softmx %x {dim=1}") ==
        "m.lathe:2:8: there is no op 'softmx'\n"
        "  did you mean 'softmax'?\n"
        "      %1 = softmx %x {dim=1}\n"
        "           ^~~~~~");
  CHECK_THAT(body_error("%1 = qqqqqqq %x"), Contains("docs/ops.md lists the ops"));
  CHECK_THAT(body_error("%1 = exp %z"), Contains("2:10: there is no value %z above this line"));
  CHECK_THAT(body_error("%1 = exp %2\n%2 = exp %x"), Contains("there is no value %2 above this line"));
  CHECK_THAT(body_error("%1 = exp %x\n%1 = exp %1"), Contains("3:1: %1 is defined already"));
  CHECK_THAT(body_error("%x = exp %x"), Contains("%x is defined already"));
  CHECK_THAT(body_error("%1 = input"), Contains("input belongs in the graph's parentheses"));
  CHECK_THAT(body_error("%1 = softmax %x {din=1}"),
             Contains("softmax has no attribute 'din'\n  did you mean 'dim'?"));
  CHECK_THAT(body_error("%1 = softmax %x {qqqq=1}"), Contains("its attributes are dim"));
  CHECK_THAT(body_error("%1 = exp %x {q=1}"), Contains("exp has no attributes"));
  CHECK_THAT(body_error("%1 = softmax %x {dim=1, dim=1}"), Contains("the attribute dim is given twice"));
  CHECK_THAT(body_error("%1 = softmax %x {dim=0.5}"), Contains("expected an integer, found '0.5'"));
  CHECK_THAT(body_error("%1 = softmax %x {dim=1"),
             Contains("expected ',' or '}', found '}'") || Contains("expected"));
  CHECK_THAT(body_error("output logits %x"), Contains("expected the output's name in double quotes, found 'logits'"));
  CHECK_THAT(body_error("update %x = %x"), Contains("expected '<-', found '='"));
  CHECK_THAT(body_error("frobnicate %x"), Contains("expected a value to define, output, update, check, body or '}'"));
  CHECK_THAT(body_error("check n < m"), Contains("unexpected '<'"));
  CHECK_THAT(body_error("%1 = exp %x loc(here)"), Contains("expected a file name in double quotes, or unknown"));
}

TEST_CASE("a written type that differs from the inferred one is an error that names both", "[parser]") {
  CHECK_THAT(body_error("%1 = exp %x : f32[n, 9]"),
             Contains("2:15: the type is written as f32[n, 9], but exp gives f32[n, h=8]"));
  CHECK_THAT(body_error("%1 = exp %x : f64[n, 8]"), Contains("written as f64[n, 8]"));
  CHECK_THAT(body_error("%1 = exp %x : f32[n, 8] strided"),
             Contains("written as f32[n, 8] strided, but exp gives f32[n, h=8]\n"));
  CHECK_THAT(body_error("%1 = transpose %x {dim0=0, dim1=1} : f32[8, n]"),
             Contains("written as f32[8, n], but transpose gives f32[h=8, n] strided"));
  CHECK_THAT(body_error("%1 = transpose %x {dim0=0, dim1=1} : f32[8, n] strided(2, 8)"),
             Contains("but transpose gives f32[h=8, n] strided(1, 8)"));
  CHECK(body_error("%1 = transpose %x {dim0=0, dim1=1} : f32[8, n] strided(1, 8)") == "no error");
  CHECK(body_error("%1 = exp %x : f32[n, eight=8]") == "no error");
}

TEST_CASE("errors from op rules are reported at the text line, and at loc(...) if given", "[parser]") {
  CHECK_THAT(body_error("%1 = softmax %x {dim=2}"), StartsWith("m.lathe:2: softmax: ") && Contains("[dim_range]"));
  const std::string both = body_error("%1 = softmax %x {dim=2} loc(\"model.cpp\":77)");
  CHECK_THAT(both, StartsWith("model.cpp:77: softmax: ") && Contains("[dim_range]") && Contains("\n  in m.lathe:2"));
  CHECK_THAT(body_error("%1 = softmax %x"), StartsWith("m.lathe:2: softmax: the attribute dim is missing"));
  CHECK_THAT(body_error("%1 = add %x"), StartsWith("m.lathe:2: add: 1 operands given, 2 wanted  [op_arity]"));
  CHECK_THAT(body_error("output \"a\" %x\noutput \"a\" %y"),
             StartsWith("m.lathe:3: output: ") && Contains("[output_name]"));
  CHECK_THAT(body_error("update %x <- %x"), Contains("[update_target]"));
  CHECK_THAT(error_of("graph @g(input %x: f32[-1]) {}"), Contains("[dim_negative]"));
  CHECK_THAT(error_of("graph @g(input %x: f32[n], input %x: f32[n]) {}"), Contains("%x is defined already"));
  CHECK_THAT(error_of("graph @g(input %x: f32[4611686018427387904, 4]) {\n %1 = view %x {shape=[1]}\n}"),
             Contains("[dim_overflow]") && Contains("in m.lathe:"));
}

TEST_CASE("checks raised by rules are added to those written in the text", "[parser]") {
  const std::string program =
      "graph @g(input %x: f32[B, n], input %y: f32[m, k]) {\n"
      "  %1 = matmul %x, %y\n"
      "  check B <= 16 : batch [max_batch] \"at most 16\"\n"
      "}\n";
  const Graph graph = parse_graph(program, "m.lathe");
  REQUIRE(graph.checks.size() == 2);
  CHECK(graph.checks[0].label == "max_batch");
  CHECK(graph.checks[0].relation == DimCheck::Relation::at_most);
  CHECK(graph.checks[0].loc == Location("m.lathe", 3));
  CHECK(graph.checks[1].op == "matmul");
  CHECK(graph.checks[1].left == Dim("n"));
  CHECK(graph.checks[1].right == Dim("m"));
}

TEST_CASE("parser limits are enforced", "[parser]") {
  const auto limited = [](std::string_view text, const ParseLimits& limits) {
    return ir::test::error_text([&] { static_cast<void>(parse_graph(text, "m.lathe", limits)); });
  };
  CHECK_THAT(limited("graph @g() {}", {.bytes = 5}), Contains("more than the 5 allowed"));
  CHECK_THAT(limited("graph @g(input %x: f32[1, 1, 1]) {}", {.rank = 2}), Contains("more than 2 dims"));
  CHECK_THAT(limited("graph @g(input %x: f32[((n))]) {}", {.nesting = 1}), Contains("nested more than 1 deep"));
  CHECK_THAT(limited("graph @g(input %x: f32[1], input %y: f32[1]) {}", {.nodes = 1}),
             Contains("more than 1 values"));
  CHECK_THAT(limited("graph @g() {\n%1 = constant {dtype=f32, shape=[3], values=[1, 2, 3]}\n}", {.list_items = 2}),
             Contains("more than 2 numbers"));
  const std::string deep(100000, '(');
  CHECK_THAT(error_of("graph @g(input %x: f32[" + deep + "n"), Contains("nested more than"));
}

TEST_CASE("long lines are truncated around the caret", "[parser]") {
  const std::string blanks(5000, ' ');
  const std::string text = error_of("graph @g(" + blanks + "nonsense)");
  CHECK(text.size() < 400);
  CHECK_THAT(text, Contains("m.lathe:1:5010") && Contains("nonsense") && Contains("^~~~~~~~"));
}
