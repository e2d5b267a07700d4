#include "ir/tensor/matcher.h"

#include <catch2/catch.hpp>

#include "ir/tensor/constants.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;
using lathe::ir::test::op;

namespace {

/// The last value of a body over %x, %y: f32[n, 4].
struct Subject {
  explicit Subject(const std::string& body)
      : graph(parse_graph("graph @g(input %x: f32[n, 4], input %y: f32[n, 4]) {\n" + body + "\n}", "m.lathe")),
        matcher(graph),
        last{static_cast<std::int32_t>(graph.size() - 1)} {}
  Match match(const Pattern& p) const { return matcher.match(p, last); }
  Graph graph;
  Matcher matcher;
  ValueId last;
};

Pattern scaled_softmax() {
  return pattern(op("softmax"), {pattern(op("mul"), {any().as("scores"), constant().as("scale")}).one_use()});
}

const std::string half = "%c = constant {dtype=f32, shape=[], values=[0.5]}\n";

}  // namespace

TEST_CASE("a pattern binds values", "[matcher]") {
  const Subject s(half + "%m = mul %x, %c\n%s = softmax %m {dim=1}");
  const Match match = s.match(scaled_softmax());
  REQUIRE(match);
  CHECK(match["scores"] == s.graph.find_argument("x"));
  CHECK(uniform_value(s.graph, match["scale"]) == 0.5);
  CHECK(match.why(s.graph).empty());
  CHECK_FALSE(match.has("other"));
  CHECK_THROWS_AS(match["other"], InternalError);
}

TEST_CASE("operands of commutative ops match in any order", "[matcher]") {
  CHECK(Subject(half + "%m = mul %c, %x\n%s = softmax %m {dim=1}").match(scaled_softmax()));
  const Pattern difference = pattern(op("sub"), {any(), constant()});
  CHECK(Subject(half + "%d = sub %x, %c").match(difference));
  CHECK_FALSE(Subject(half + "%d = sub %c, %x").match(difference));
  SECTION("a later mismatch tries the other order") {
    // mul(a, add(a, b)): the inner `a` determines the order of mul's operands.
    const Pattern p = pattern(op("mul"), {any().as("a"), pattern(op("add"), {any().as("a"), any().as("b")})});
    const Subject s("%1 = add %x, %y\n%2 = mul %1, %y");
    const Match match = s.match(p);
    REQUIRE(match);
    CHECK(match["a"] == s.graph.find_argument("y"));
    CHECK(match["b"] == s.graph.find_argument("x"));
  }
}

TEST_CASE("a name used twice matches one value", "[matcher]") {
  const Pattern square = pattern(op("mul"), {any().as("a"), any().as("a")});
  CHECK(Subject("%1 = mul %x, %x").match(square));
  const Match match = Subject("%1 = mul %x, %y").match(square);
  REQUIRE_FALSE(match);
  CHECK(match.failure()->condition == "wanted the same value as 'a', which is %x");
}

TEST_CASE("conditions on a value", "[matcher]") {
  const Subject s("%1 = softmax %x {dim=1}\n%2 = add %1, %1");
  const Pattern sum = pattern(op("add"));
  CHECK(s.match(sum.dtype(f32).rank(2)));
  CHECK(s.match(sum.dtype(f64)).failure()->condition == "wanted dtype f64, found f32");
  CHECK(s.match(sum.rank(3)).failure()->condition == "wanted rank 3, found f32[n, 4]");
  const auto never = [](const Graph&, ValueId) { return false; };
  CHECK(s.match(sum.where("is never there", never)).failure()->condition == "wanted a value that is never there");
  const auto softmax_over = [&](std::int64_t dim) {
    return pattern(op("add"), {pattern(op("softmax"), {argument()}).attr("dim", dim), any()});
  };
  CHECK(s.match(softmax_over(1)));
  CHECK(s.match(softmax_over(0)).failure()->condition == "wanted dim=0, found 1");
  CHECK(s.match(pattern(op("add"), {any().one_use(), any()})).failure()->condition ==
        "wanted a value with one reader, found 2");
}

TEST_CASE("outputs and updates count as users", "[matcher]") {
  const Subject s("%1 = exp %x\noutput \"e\" %1\n%2 = neg %1");
  CHECK(s.matcher.uses({2}) == 2);
  CHECK_FALSE(s.match(pattern(op("neg"), {any().one_use()})));
}

TEST_CASE("constants match by value, through views", "[matcher]") {
  const std::string body = half + "%e = expand %c {shape=[n, 4]}\n%t = transpose %e {dim0=0, dim1=1}\n%n = neg %t";
  CHECK(Subject(body).match(pattern(op("neg"), {constant(0.5)})));
  const Match match = Subject(body).match(pattern(op("neg"), {constant(2)}));
  CHECK(match.failure()->condition == "wanted a constant that is 2.0, found 0.5");
  const auto positive = [](double v) { return v > 0; };
  CHECK(Subject(body).match(pattern(op("neg"), {constant("is positive", positive)})));
  CHECK(Subject("%n = neg %x").match(pattern(op("neg"), {constant()})).failure()->condition ==
        "wanted a constant that is any number, found input");
  CHECK(Subject("%c = constant {dtype=f32, shape=[2], values=[1, 2]}\n%n = neg %c")
            .match(pattern(op("neg"), {constant()}))
            .failure());
}

TEST_CASE("alternatives and ops to look through", "[matcher]") {
  const Pattern either_way = pattern(op("neg"), {either({pattern(op("exp")), pattern(op("log"))}).as("e")});
  CHECK(Subject("%1 = exp %x\n%2 = neg %1").match(either_way));
  CHECK(Subject("%1 = log %x\n%2 = neg %1").match(either_way).has("e"));
  CHECK_FALSE(Subject("%1 = sin %x\n%2 = neg %1").match(either_way));
  const Pattern under =
      pattern(op("neg"), {through({&op("transpose"), &op("contiguous")}, pattern(op("exp")).as("e"))});
  const Subject s("%1 = exp %x\n%2 = transpose %1 {dim0=0, dim1=1}\n%3 = contiguous %2\n%4 = neg %3");
  REQUIRE(s.match(under));
  CHECK(s.match(under)["e"] == ValueId{2});
  CHECK_FALSE(Subject("%1 = exp %x\n%2 = abs %1\n%3 = neg %2").match(under));
}

TEST_CASE("a failed match reports the condition, and where it failed", "[matcher]") {
  const Subject wrong_root("%1 = exp %x");
  CHECK(wrong_root.match(scaled_softmax()).why(wrong_root.graph) ==
        "m.lathe:2: wanted softmax, found exp\n  %1 = exp %x                               : f32[n, 4]");
  const Subject two_readers(half + "%m = mul %x, %c\n%n = neg %m\n%s = softmax %m {dim=1}");
  CHECK(two_readers.match(scaled_softmax()).failure()->condition == "wanted a value with one reader, found 2");
  const Subject no_scale(half + "%m = mul %x, %y\n%s = softmax %m {dim=1}");
  const auto failure = no_scale.match(scaled_softmax()).failure();
  CHECK(failure->condition == "wanted a constant that is any number, found input");
  CHECK(no_scale.graph[failure->value].name == "y");
}

TEST_CASE("the commutative ops", "[matcher]") {
  for (const char* yes : {"add", "mul", "minimum", "maximum", "eq", "ne", "logical_and", "logical_or"})
    CHECK(is_commutative(op(yes)));
  for (const char* no : {"sub", "div", "pow", "rem", "lt", "le", "where", "matmul", "concat"})
    CHECK_FALSE(is_commutative(op(no)));
}
