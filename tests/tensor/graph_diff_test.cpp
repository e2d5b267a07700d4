#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/diff/common_subsequence.h"
#include "ir/tensor/diff/graph_diff.h"
#include "ir/tensor/text/parser.h"

using namespace lathe;
using namespace lathe::ir;

namespace {

std::string compared(std::string_view a, std::string_view b, const DiffOptions& options = {}) {
  return to_string(diff(parse_graph(a, "a"), parse_graph(b, "b"), options));
}

/// A chain of `length` pairs of equal ops, with one more op after `inserted` pairs (-1: none).
std::string chain(int length, int inserted, const std::string& extra = "neg") {
  std::string text = "graph @chain(input %x: f32[n, 4], parameter %w: f32[4]) {\n", last = "%x";
  int next = 0;
  const auto add = [&](const std::string& op, const std::string& operands) {
    const std::string id = "%" + std::to_string(++next);
    text += "  " + id + " = " + op + " " + operands + "\n";
    last = id;
  };
  for (int i = 0; i < length; ++i) {
    if (i == inserted) add(extra, last);
    add("add", last + ", %w");
    add("tanh", last);
  }
  return text + "  output \"y\" " + last + "\n}\n";
}

constexpr std::string_view small =
    R"(graph @g(input %x: f32[n, 4], input %m: f32[4], parameter %w: f32[4, 4], state %s: f32[]) {
  %1 = matmul %x, %w
  %2 = add %1, %m
  %3 = softmax %2 {dim=-1}
  %4 = sum %3 {dims=[0, 1]}
  %5 = add %s, %4
  output "y" %3
  update %s <- %5
})";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(small);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("diff: a graph equals itself", "[tensor][diff]") {
  const Graph graph = parse_graph(small);
  const GraphDiff none = diff(graph, graph);
  CHECK(none.is_empty());
  CHECK(none.same == graph.size());
  CHECK(summary(none) == "no difference; 9 values are equal");
}

TEST_CASE("diff: one op inserted early is one line", "[tensor][diff]") {
  for (const int at : {0, 1, 20, 39}) {
    CAPTURE(at);
    const std::string text = compared(chain(40, -1), chain(40, at));
    const std::string before = at == 0 ? "%x" : "%" + std::to_string(2 * at);
    CHECK(text == "+ %" + std::to_string(2 * at + 1) + " = neg " + before +
                      " : f32[n, 4] (b:" + std::to_string(2 * at + 2) + "); %" + std::to_string(2 * at + 2) +
                      " add reads it instead of " + before + "\n");
    const std::string back = compared(chain(40, at), chain(40, -1));
    CHECK(back == "- %" + std::to_string(2 * at + 1) + " = neg " + before +
                      " : f32[n, 4] (a:" + std::to_string(2 * at + 2) + "); %" + std::to_string(2 * at + 1) +
                      " add reads " + before + " instead\n");
  }
}

TEST_CASE("diff: the order of independent values does not count", "[tensor][diff]") {
  const std::string_view one =
      "graph @g(input %x: f32[n]) { %1 = tanh %x %2 = neg %x %3 = add %1, %2 output \"y\" %3 }";
  const std::string_view other =
      "graph @g(input %x: f32[n]) { %1 = neg %x %2 = tanh %x %3 = add %2, %1 output \"y\" %3 }";
  CHECK(compared(one, other) == "");
  CHECK(difference(parse_graph(one), parse_graph(other)));
}

TEST_CASE("diff: changed attributes, types, ops and operands are lines of their value", "[tensor][diff]") {
  CHECK(compared(small, replaced("{dim=-1}", "{dim=0}")) == "~ %3 softmax (a:4): dim -1 -> 0\n");
  CHECK(compared(small, replaced("sum %3 {dims=[0, 1]}", "mean %3 {dims=[0, 1]}")) ==
        "~ %4 sum (a:5): sum -> mean\n");
  CHECK(compared(small, replaced("add %s, %4", "add %4, %s")) ==
        "~ %5 add (a:6): operand 0: %s -> %4, operand 1: %4 -> %s\n");
}

TEST_CASE("diff: types that follow from an operand's are counted, not listed", "[tensor][diff]") {
  const std::string a = "graph @g(input %x: f32[n, 4]) { %1 = tanh %x %2 = neg %1 output \"y\" %2 }";
  const std::string b = "graph @g(input %x: f32[n, 8]) { %1 = tanh %x %2 = neg %1 output \"y\" %2 }";
  CHECK(compared(a, b) == "~ %x input (a:1): f32[n, 4] -> f32[n, 8]\n");
  const GraphDiff found = diff(parse_graph(a), parse_graph(b));
  CHECK(summary(found) == "1 argument changed; the types of 2 values differ as a result; 0 values are equal");
  CHECK(compared(a, b, {.implied_types = true}) ==
        "~ %x input (a:1): f32[n, 4] -> f32[n, 8]\n"
        "~ %1 tanh (a:1): f32[n, 4] -> f32[n, 8]\n"
        "~ %2 neg (a:1): f32[n, 4] -> f32[n, 8]\n");
}

TEST_CASE("diff: arguments, outputs, updates and names", "[tensor][diff]") {
  CHECK(compared(small, replaced("input %m: f32[4], ", "input %m: f32[4], input %k: bool[4], ")) ==
        "+ input %k: bool[4] (b:1)\n");
  CHECK(compared(small, replaced("input %x: f32[n, 4], input %m: f32[4]", "input %m: f32[4], input %x: f32[n, 4]")) ==
        "~ the order of the arguments differs: %m is where %x was\n");
  CHECK(compared(small, replaced("output \"y\" %3", "output \"y\" %3 output \"z\" %1")) == "+ output \"z\": %1\n");
  CHECK(compared(small, replaced("output \"y\" %3", "output \"y\" %2")) == "~ output \"y\": %3 -> %2\n");
  CHECK(compared(small, replaced("update %s <- %5", "")) == "- update %s: %5\n");
  CHECK(compared(small, replaced("@g", "@h")) == "~ graph @g -> @h\n");
  CHECK(compared(small, replaced("@g", "@h"), {.names = false}) == "");
  const std::string named = replaced("{dim=-1}", "{dim=-1} name(\"weights\")");
  CHECK(compared(small, named) == "~ %3 softmax (a:4): name \"\" -> \"weights\"\n");
  CHECK(compared(small, named, {.names = false}) == "");
}

TEST_CASE("diff: an output that reads an inserted value is part of its line", "[tensor][diff]") {
  CHECK(compared(small, replaced("output \"y\" %3", "%6 = neg %3 output \"y\" %6")) ==
        "+ %6 = neg %3 : f32[n, 4] (b:7); output \"y\" is it instead of %3\n");
}

TEST_CASE("diff: changes at both ends keep what is between them", "[tensor][diff]") {
  std::string a = chain(30, -1), b = chain(30, 2);
  const std::string result = "output \"y\" %61";
  b.replace(b.find(result), result.size(), "%62 = exp %61\n  output \"y\" %62");
  const GraphDiff found = diff(parse_graph(a), parse_graph(b));
  CHECK(found.lines.size() == 2);
  CHECK(found.same == 62);
}

TEST_CASE("diff: an op that is replaced by several", "[tensor][diff]") {
  const std::string_view a = "graph @g(input %x: f32[n]) { %1 = tanh %x %2 = silu %1 %3 = neg %2 output \"y\" %3 }";
  const std::string_view b =
      "graph @g(input %x: f32[n]) { %1 = tanh %x %2 = sigmoid %1 %3 = mul %1, %2 %4 = neg %3 output \"y\" %4 }";
  CHECK(compared(a, b) ==
        "- %2 = silu %1 : f32[n] (a:1)\n"
        "+ %2 = sigmoid %1 : f32[n] (b:1)\n"
        "+ %3 = mul %1, %2 : f32[n] (b:1); %4 neg reads it instead of %2\n");
}

TEST_CASE("diff: values that were merged name what their readers read", "[tensor][diff]") {
  const std::string_view a =
      "graph @g(input %x: f32[n]) { %1 = tanh %x %2 = neg %1 output \"y\" %2 output \"z\" %1 }";
  const std::string_view b = "graph @g(input %x: f32[n]) { %1 = tanh %x output \"y\" %1 output \"z\" %1 }";
  CHECK(compared(a, b) == "- %2 = neg %1 : f32[n] (a:1); output \"y\" is %1 instead\n");
}

TEST_CASE("common_subsequence: is longest, in order, and ends for lists that share nothing", "[tensor][diff]") {
  using Keys = std::vector<std::size_t>;
  const auto length = [](const Keys& a, const Keys& b) {
    std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 1; i <= a.size(); ++i)
      for (std::size_t j = 1; j <= b.size(); ++j)
        best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1 : std::max(best[i - 1][j], best[i][j - 1]);
    return best[a.size()][b.size()];
  };
  std::size_t seed = 1;
  const auto random = [&](std::size_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
  };
  for (int turn = 0; turn < 300; ++turn) {
    Keys a(random(20)), b(random(20));
    for (std::size_t& key : a) key = random(4);
    for (std::size_t& key : b) key = random(4);
    const auto found = common_subsequence(a, b);
    CHECK(found.size() == length(a, b));
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(a[found[i].first] == b[found[i].second]);
      if (i > 0) CHECK((found[i - 1].first < found[i].first && found[i - 1].second < found[i].second));
    }
  }
  Keys even(4000), odd(4000);
  for (std::size_t i = 0; i < even.size(); ++i) {
    even[i] = 2 * i;
    odd[i] = 2 * i + 1;
  }
  odd[7] = even[3];
  CHECK(common_subsequence(even, odd) == std::vector<std::pair<std::size_t, std::size_t>>{{3, 7}});
}
