#include "passes/check/find_fault.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "ir/ops/composites/composites.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/rebuild.h"
#include "tests/passes/support.h"

using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;

namespace {

/// A step of gradient descent: three results depend on the sum, one does not.
constexpr const char* text = R"(graph @step(input %x: f32[n, 4], parameter %w: f32[3, 4]) {
  %1 = linear %x, %w                        loc("m.cpp":1)
  %2 = tanh %1                              loc("m.cpp":2)
  %3 = sum %2 {dims=[1], keepdim=true}      loc("m.cpp":3)
  %4 = mul %2, %3                           loc("m.cpp":4)
  %5 = exp %3                               loc("m.cpp":5)
  %6 = mul %w, %w                           loc("m.cpp":6)
  %7 = sigmoid %6                           loc("m.cpp":7)
  output "a" %4
  output "b" %5
  output "c" %6
  update %w <- %7
})";

struct Subject {
  ir::Graph graph = parse(text);
  Tensors arguments = random_arguments(graph, {{"n", 5}});

  /// Returns the results of a graph in which `op` returns half of the correct value.
  Tensors run(const ir::Graph& part, const Op& op) const {
    const ir::Graph wrong = rebuild(part, [&](GraphBuilder& b, const Node& node, std::span<const Value> operands) {
      return node.op == &op ? std::optional(mul(b.add(op, operands, node.attrs), 0.5)) : std::nullopt;
    });
    return interpret(wrong, arguments);
  }
  std::vector<Fault> faults(const std::vector<std::string>& wrong, const RunGraph& by) const {
    return find_faults(graph, arguments, wrong, by);
  }
  const Op& op(const Fault& fault) const { return *graph[fault.value].op; }
};

bool is_output(const ir::Graph& graph, ValueId id) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const auto& out) { return out.value == id; });
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the faulty op is reported, not ops that inherit its error", "[check]") {
  const Subject subject;
  const auto faults = subject.faults({"a", "b"}, [&](const ir::Graph& part) { return subject.run(part, ops::tanh); });
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].kind == Fault::Kind::op);
  CHECK(&subject.op(faults[0]) == &ops::tanh);
  CHECK(faults[0].inherits == Names{"a", "b"});
  CHECK(faults[0].nearness.difference.largest > 0.1);
}

TEST_CASE("each wrong result is attributed to an op", "[check]") {
  const Subject subject;
  const auto faults = subject.faults({"a", "b", "w"}, [&](const ir::Graph& part) {
    Tensors results = subject.run(part, ops::sum);
    const Tensors others = subject.run(part, ops::sigmoid);
    for (const Output& output : part.outputs)
      if (part[output.value].op == &ops::sigmoid) results.at(output.name) = others.at(output.name);
    return results;
  });
  REQUIRE(faults.size() == 2);
  CHECK(&subject.op(faults[0]) == &ops::sum);
  CHECK(faults[0].inherits == Names{"a", "b"});
  CHECK(&subject.op(faults[1]) == &ops::sigmoid);
  CHECK(faults[1].inherits == Names{"w"});
}

TEST_CASE("an op that is wrong only if its operand is not an output is found alone", "[check]") {
  const Subject subject;
  const auto faults = subject.faults({"a", "b"}, [&](const ir::Graph& part) {
    for (const Node& node : part.nodes)
      if (node.op == &ops::sum && !is_output(part, node.operands[0])) return subject.run(part, ops::sum);
    return interpret(part, subject.arguments);
  });
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].kind == Fault::Kind::alone);
  CHECK(&subject.op(faults[0]) == &ops::sum);
  CHECK(faults[0].inherits == Names{"a", "b"});
}

TEST_CASE("a result that is wrong only next to other outputs is reported with those outputs", "[check]") {
  const Subject subject;
  const auto faults = subject.faults({"b"}, [&](const ir::Graph& part) {
    const bool both = part.outputs.size() >= 2 && part.outputs[0].name == "a" && part.outputs[1].name == "b";
    return both && !part.updates.empty() ? subject.run(part, ops::exp) : interpret(part, subject.arguments);
  });
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].kind == Fault::Kind::together);
  CHECK(&subject.op(faults[0]) == &ops::exp);
  CHECK(faults[0].with == Names{"a", "w"});
  CHECK(faults[0].inherits == Names{"b"});
}
